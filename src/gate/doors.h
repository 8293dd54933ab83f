// The listeners that stand inside a sandbox's namespace, and their loops.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <vector>

#include "audit/recorder.h"
#include "base/fd.h"
#include "base/rate.h"
#include "gate/front.h"
#include "net/task.h"
#include "net/worker.h"
#include "wire/messages.h"

namespace sallyport::gate {

// Of one session at once, whatever they are for. Then nothing more is accepted until one ends: connections
// wait in the kernel's backlog meanwhile.
inline constexpr std::size_t kMaxConnections = 256;
// That it came to this is told at most so often.
inline constexpr double kMaxFullLinesPerSecond = 1;

class Doors {
 public:
  // All are borrowed; what open() starts goes on as long as the worker runs, so all outlive its run().
  Doors(net::Worker& worker, Front& front, dns::Server& dns, audit::Recorder& recorder);
  Doors(const Doors&) = delete;
  Doors& operator=(const Doors&) = delete;

  // `fds`: as wire::GateDoors says. Once.
  Status open(const wire::GateDoors& message, std::vector<Fd> fds);

  std::size_t connections() const { return connections_; }

 private:
  net::Task<> accept_loop(Fd listener, os::DoorMode mode);
  // Accepts what waits, as long as there is room. 0, or the errno that the listener has a problem with.
  int accept_waiting(int listener, os::DoorMode mode);
  net::Task<> serve(Fd connection, os::DoorMode mode);
  net::Task<> wait_for_room();

  net::Worker& worker_;
  Front& front_;
  dns::Server& dns_;
  audit::Recorder& recorder_;
  std::size_t connections_ = 0;
  boost::asio::steady_timer room_;  // never expires; cancelled when a connection ends
  TokenBucket full_lines_{kMaxFullLinesPerSecond, 1};
};

}  // namespace sallyport::gate
