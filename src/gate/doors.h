// The listeners, inside a sandbox's namespace or on the host's loopback addresses, and their loops.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "audit/recorder.h"
#include "base/fd.h"
#include "base/rate.h"
#include "gate/front.h"
#include "net/task.h"
#include "net/worker.h"
#include "wire/messages.h"

namespace sallyport::gate {

// That the doors are full is told at most so often.
inline constexpr double kMaxFullLinesPerSecond = 1;

class Doors {
 public:
  // All are borrowed; what open() starts goes on as long as the worker runs, so all outlive its run().
  // `max_connections`: of the session at once, whatever they are for. Then nothing more is accepted until one
  // ends: connections wait in the kernel's backlog meanwhile.
  Doors(net::Worker& worker, Front& front, dns::Server& dns, audit::Recorder& recorder,
        std::size_t max_connections);
  Doors(const Doors&) = delete;
  Doors& operator=(const Doors&) = delete;

  // `fds`: as wire::GateDoors says. Once.
  Status open(const wire::GateDoors& message, std::vector<Fd> fds);
  // `fds`: as wire::GateHostDoors says. Once.
  Status open(const wire::GateHostDoors& message, std::vector<Fd> fds);

  std::size_t connections() const { return connections_; }

 private:
  // What serves a connection of a door.
  using Serve = std::function<net::Task<>(Fd connection)>;

  net::Task<> accept_loop(Fd listener, Serve serve);
  // Accepts what waits, as long as there is room. 0, or the errno that the listener has a problem with.
  int accept_waiting(int listener, const Serve& serve);
  net::Task<> serve_one(Fd connection, Serve serve);
  net::Task<> serve_sandbox(Fd connection, os::DoorMode mode);
  // Every user of the host can reach such a door; only one is served.
  net::Task<> serve_host(Fd connection, wire::HostDoor door);
  net::Task<> serve_use(Fd connection, wire::HostDoor door, std::string destination);
  net::Task<> serve_tls(Fd connection, Target target);
  net::Task<> serve_plain_http(Fd connection, Target target);
  Status check_owner(const Fd& connection) const;
  net::Task<> wait_for_room();

  net::Worker& worker_;
  Front& front_;
  dns::Server& dns_;
  audit::Recorder& recorder_;
  Fd diagnosis_;  // with host doors: for os::peer_owner()
  uid_t owner_ = 0;
  const std::size_t max_connections_;
  std::size_t connections_ = 0;
  boost::asio::steady_timer room_;  // never expires; cancelled when a connection ends
  TokenBucket full_lines_{kMaxFullLinesPerSecond, 1};
};

}  // namespace sallyport::gate
