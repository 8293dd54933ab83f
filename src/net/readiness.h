// What plain and TLS streams share: a non-blocking socket on the worker's loop, the wait until it is ready,
// the limit on how long that may take, and how the connection ended.
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "net/stream.h"
#include "net/task.h"
#include "net/worker.h"

namespace sallyport::net {

class Readiness {
 public:
  // Operations that go on without waiting before the other coroutines get a turn: a peer that is always ready
  // must not have the worker for itself.
  static constexpr int kTurnOperations = 16;

  enum class For : std::uint8_t { Reading, Writing };

  Readiness(Worker& worker, Fd socket, Peer peer);

  int fd() { return descriptor_.native_handle(); }
  // Fails when the connection timed out or was closed here: look before every use of fd(), whose number may
  // be another file's by then.
  Status usable() const;
  // Until the socket is ready, or has an error to tell.
  Task<Status> wait(For direction);
  // Bytes moved: pushes an idle limit away. True now and then: then let_others_run().
  [[nodiscard]] bool moved();
  Task<> let_others_run();

  void limit_idle(Clock::duration limit);
  void limit_total(Clock::duration limit);
  void no_limit();
  // Whoever waits gets an error.
  void stop_waiting() noexcept;
  void close() noexcept;
  // The socket, when nobody waits; it is closed here afterwards. None when it was closed before.
  Fd release();

  // The peer's way of having gone, and of having been too slow.
  std::unexpected<Error> gone(std::string detail) const;
  Reason timeout_reason() const;

 private:
  void expire();

  Peer peer_;
  bool timed_out_ = false;
  bool closed_ = false;
  int operations_ = 0;  // since the last wait
  std::optional<Clock::duration> idle_limit_;
  boost::asio::posix::stream_descriptor descriptor_;
  Deadline deadline_;
};

}  // namespace sallyport::net
