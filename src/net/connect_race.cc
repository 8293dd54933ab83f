#include "net/connect_race.h"

#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <list>
#include <memory>
#include <optional>
#include <utility>

namespace sallyport::net {
namespace {

namespace asio = boost::asio;

// What was dialled is what was judged: says so even if the kernel's translation tables say otherwise.
Status check_peer(int socket, const os::Endpoint& wanted) {
  os::SocketAddress peer;
  peer.length = sizeof peer.storage;
  if (::getpeername(socket, peer.get(), &peer.length) != 0) {
    return fail_errno(Reason::UpstreamUnreachable, "getpeername");
  }
  if (os::endpoint_from(peer.storage) == wanted) return {};
  return fail(Reason::UpstreamUnreachable, "connected to another address than was dialled");
}

// A socket whose connection is being made. Destroyed, it is closed.
struct Attempt {
  Attempt(Worker& worker, const os::Endpoint& to, Fd socket)
      : peer(to), descriptor(worker.io(), socket.get()) {
    (void)socket.release();
  }

  os::Endpoint peer;
  asio::posix::stream_descriptor descriptor;
  // Made, or failed. Owners: this and the handler of the wait, which may run when the race is over.
  std::shared_ptr<bool> ready = std::make_shared<bool>(false);

  // Once it is ready.
  Result<Connected> finish() {
    int problem = 0;
    socklen_t size = sizeof problem;
    if (::getsockopt(descriptor.native_handle(), SOL_SOCKET, SO_ERROR, &problem, &size) != 0) problem = errno;
    if (problem != 0) return fail(Reason::UpstreamUnreachable, "connect: " + errno_text(problem));
    if (auto status = check_peer(descriptor.native_handle(), peer); !status) return fail(std::move(status));
    return Connected{Fd(descriptor.release()), peer};
  }
};

// One coroutine runs it, and no other.
class Race {
 public:
  Race(Worker& worker, std::vector<os::Endpoint> endpoints, Clock::duration limit)
      : worker_(worker),
        endpoints_(std::move(endpoints)),
        end_(Clock::now() + limit),
        wake_(std::make_shared<asio::steady_timer>(worker.io())) {}

  Task<Result<Connected>> run() {
    for (;;) {
      if (auto connected = take_winner()) co_return *std::move(connected);
      const auto now = Clock::now();
      if (now >= end_ && !attempts_.empty()) {
        co_return fail(Reason::UpstreamTimeout, attempts_.back().peer.text() + ": connecting took too long");
      }
      const bool more = next_ < endpoints_.size();
      if (more && now >= next_start_) {
        start(endpoints_[next_++]);
        continue;
      }
      if (attempts_.empty()) co_return std::unexpected(std::move(last_failure_));
      wake_->expires_at(more ? std::min(end_, next_start_) : end_);
      boost::system::error_code ignored;
      co_await wake_->async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    }
  }

 private:
  // The first connection that was made. Attempts that have failed go.
  std::optional<Connected> take_winner() {
    for (auto attempt = attempts_.begin(); attempt != attempts_.end();) {
      if (!*attempt->ready) {
        ++attempt;
        continue;
      }
      auto connected = attempt->finish();
      if (connected) return *std::move(connected);
      remember(attempt->peer, std::move(connected).error());
      attempt = attempts_.erase(attempt);
      next_start_ = Clock::now();
    }
    return std::nullopt;
  }

  void remember(const os::Endpoint& peer, const Error& failure) {
    last_failure_ = {failure.reason, peer.text() + ": " + failure.detail};
  }

  void start(const os::Endpoint& peer) {
    const os::SocketAddress to = os::socket_address(peer);
    Fd socket(::socket(peer.family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket || (::connect(socket.get(), to.get(), to.length) != 0 && errno != EINPROGRESS)) {
      return remember(peer, {Reason::UpstreamUnreachable, "connect: " + errno_text(errno)});
    }
    if (attempts_.size() == kMaxConcurrentAttempts) attempts_.pop_front();
    Attempt& attempt = attempts_.emplace_back(worker_, peer, std::move(socket));
    attempt.descriptor.async_wait(asio::posix::stream_descriptor::wait_write,
                                  [ready = attempt.ready, wake = wake_](const boost::system::error_code&) {
                                    *ready = true;
                                    wake->cancel();
                                  });
    schedule_next();
  }

  // With as many under way as there may be, the next one takes the oldest's place: not before each of those
  // to come can have its even share of the time, so that silent addresses do not use up all of it.
  void schedule_next() {
    const auto now = Clock::now();
    next_start_ = now + kConnectionAttemptDelay;
    if (attempts_.size() < kMaxConcurrentAttempts) return;
    const auto to_come = static_cast<Clock::rep>(endpoints_.size() - next_);
    next_start_ = std::max(next_start_, now + (end_ - now) / (to_come + 1));
  }

  Worker& worker_;
  std::vector<os::Endpoint> endpoints_;
  std::size_t next_ = 0;  // the endpoint to try then
  Clock::time_point next_start_ = Clock::time_point::min();
  Clock::time_point end_;
  std::list<Attempt> attempts_;               // under way, the oldest first
  std::shared_ptr<asio::steady_timer> wake_;  // owners: this and the handlers of their waits
  Error last_failure_{Reason::UpstreamUnresolved, "no address"};
};

}  // namespace

Task<Result<Connected>> connect_first(Worker& worker, std::vector<os::Endpoint> endpoints,
                                      Clock::duration limit) {
  Race race(worker, std::move(endpoints), limit);
  co_return co_await race.run();
}

}  // namespace sallyport::net
