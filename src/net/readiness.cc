#include "net/readiness.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

namespace sallyport::net {

namespace asio = boost::asio;

Readiness::Readiness(Worker& worker, Fd socket, Peer peer)
    : peer_(peer), descriptor_(worker.io()), deadline_(worker, [this] { expire(); }) {
  const int on = 1;
  // Neither means anything to a Unix socket: failing is right there.
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(socket.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  descriptor_.assign(socket.get());
  (void)socket.release();
  descriptor_.non_blocking(true);
  deadline_.set_at_end();
}

Status Readiness::usable() const {
  if (timed_out_) return fail(timeout_reason(), "nothing moved for too long");
  if (closed_) return gone("closed here");
  return {};
}

Task<Status> Readiness::wait(For direction) {
  if (auto status = usable(); !status) co_return status;
  const auto what = direction == For::Reading ? asio::posix::stream_descriptor::wait_read
                                              : asio::posix::stream_descriptor::wait_write;
  boost::system::error_code error;
  co_await descriptor_.async_wait(what, asio::redirect_error(asio::use_awaitable, error));
  operations_ = 0;
  if (auto status = usable(); !status) co_return status;
  if (error) co_return gone(error.message());
  co_return Status();
}

bool Readiness::moved() {
  if (idle_limit_ && !timed_out_ && !closed_) deadline_.set(*idle_limit_);
  return ++operations_ >= kTurnOperations;
}

Task<> Readiness::let_others_run() {
  operations_ = 0;
  co_await asio::post(descriptor_.get_executor(), asio::use_awaitable);
}

void Readiness::limit_idle(Clock::duration limit) {
  if (timed_out_ || closed_) return;
  idle_limit_ = limit;
  deadline_.set(limit);
}

void Readiness::limit_total(Clock::duration limit) {
  if (timed_out_ || closed_) return;
  idle_limit_.reset();
  deadline_.set(limit);
}

void Readiness::no_limit() {
  idle_limit_.reset();
  if (closed_) {
    deadline_.clear();
  } else {
    deadline_.set_at_end();
  }
}

void Readiness::stop_waiting() noexcept {
  boost::system::error_code ignored;
  if (!closed_) descriptor_.cancel(ignored);
}

void Readiness::close() noexcept {
  if (closed_) return;
  closed_ = true;
  no_limit();
  boost::system::error_code ignored;
  descriptor_.close(ignored);  // whoever waits comes back with an error
}

Fd Readiness::release() {
  if (closed_) return {};
  closed_ = true;
  no_limit();
  return Fd(descriptor_.release());
}

void Readiness::expire() {
  timed_out_ = true;
  stop_waiting();
}

std::unexpected<Error> Readiness::gone(std::string detail) const {
  switch (peer_) {
    case Peer::Client:
      return fail(Reason::ClientClosed, std::move(detail));
    case Peer::Upstream:
      return fail(Reason::UpstreamClosed, std::move(detail));
    case Peer::Vault:
      return fail(Reason::VaultUnavailable, std::move(detail));
  }
  std::unreachable();
}

Reason Readiness::timeout_reason() const {
  switch (peer_) {
    case Peer::Client:
      return Reason::ClientTimeout;
    case Peer::Upstream:
      return Reason::UpstreamTimeout;
    case Peer::Vault:
      return Reason::VaultUnavailable;
  }
  std::unreachable();
}

}  // namespace sallyport::net
