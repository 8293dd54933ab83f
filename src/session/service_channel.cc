#include "session/service_channel.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <utility>

namespace sallyport::session {

ServiceChannel::ServiceChannel(os::EventLoop& loop, ServiceProcess& process, Callbacks callbacks)
    : loop_(loop), process_(process), callbacks_(std::move(callbacks)) {}

ServiceChannel::~ServiceChannel() {
  close();
}

void ServiceChannel::open() {
  process_.channels_.insert(this);
  if (process_.running()) connect();
}

void ServiceChannel::connect() {
  if (socket_ || retry_timer_) return;
  auto socket = process_.open_session();
  // It died, and will be started again.
  if (!socket && socket.error().reason == Reason::SessionEnded) return;
  // Many sessions are opened at once.
  if (!socket && socket.error().reason == Reason::Overloaded) {
    retry_timer_ = loop_.after(ServiceProcess::kFirstBackOff, [this] {
      retry_timer_.reset();
      if (process_.running()) connect();
    });
    return;
  }
  if (!socket) return give_up(std::move(socket).error());
  socket_ = *std::move(socket);
  listen();
  callbacks_.on_start();
}

void ServiceChannel::listen() {
  loop_.watch(socket_.get(), POLLIN, [this](short) { on_readable(); });
}

void ServiceChannel::send(std::string_view message, std::span<const int> fds) {
  if (!socket_ || on_ended_) return;
  Status sent = queue_.empty() ? os::send_packet(socket_.get(), message, fds) : queue(message, fds);
  if (!sent && sent.error().reason == Reason::Overloaded && queue_.empty()) sent = queue(message, fds);
  // A failure shows as the end of the socket.
  if (!sent) ::shutdown(socket_.get(), SHUT_RDWR);
}

Status ServiceChannel::queue(std::string_view message, std::span<const int> fds) {
  if (queue_.size() >= kMaxQueued) {
    process_.kill();
    return {};
  }
  Message copy{.bytes = std::string(message), .fds = {}};
  for (const int fd : fds) {
    Fd duplicate(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (!duplicate) return fail_errno(Reason::Internal, "fcntl F_DUPFD_CLOEXEC");
    copy.fds.push_back(std::move(duplicate));
  }
  queue_.push_back(std::move(copy));
  if (queue_.size() > 1) return {};
  // It is heard again when it has listened: what it says would only want more answers.
  loop_.watch(socket_.get(), POLLOUT, [this](short) { flush(); });
  deaf_timer_ = loop_.after(kMaxDeaf, [this] {
    deaf_timer_.reset();
    process_.kill();
  });
  return {};
}

void ServiceChannel::flush() {
  while (!queue_.empty()) {
    const Message& next = queue_.front();
    std::vector<int> fds;
    for (const Fd& fd : next.fds) fds.push_back(fd.get());
    if (Status sent = os::send_packet(socket_.get(), next.bytes, fds); !sent) {
      if (sent.error().reason == Reason::Overloaded) return;
      queue_.clear();  // it is gone, as reading from it says
      break;
    }
    queue_.pop_front();
  }
  cancel(deaf_timer_);
  listen();
}

void ServiceChannel::on_readable() {
  // A few at once spare calls of poll(2); not all, so that others have their turn.
  for (int i = 0; i < kMaxPacketsPerTurn; ++i) {
    auto packet = os::recv_packet(socket_.get());
    if (packet && !*packet) return;
    // An error: over our limits, so not the program that we started.
    if (!packet) process_.kill();
    if (!packet || (*packet)->end) return on_end();
    callbacks_.on_packet(std::move(**packet));
    if (!socket_ || !queue_.empty()) return;
  }
}

void ServiceChannel::on_end() {
  if (on_ended_) return lost("");
  if (given_up_ >= ServiceProcess::kMaxRestarts) {
    return give_up({Reason::ProcessDied, process_.program_name_ + " gives the session up again and again"});
  }
  disconnect();
  // A process that dies closes its sockets in any order: if this was the first of them, lost() is next.
  retry_timer_ = loop_.after(ServiceProcess::back_off(given_up_), [this] {
    ++given_up_;
    lost(process_.program_name_ + " gave the session up");
    if (process_.running()) connect();
  });
}

void ServiceChannel::lost(const std::string& how) {
  cancel(retry_timer_);
  disconnect();
  if (const auto on_ended = std::exchange(on_ended_, nullptr)) {
    process_.channels_.erase(this);
    return on_ended();
  }
  callbacks_.on_death(how);
}

void ServiceChannel::give_up(Error error) {
  if (finishing_) return lost("");
  close();
  callbacks_.on_failure(std::move(error));
}

void ServiceChannel::end(std::function<void()> on_ended) {
  hang_up(std::move(on_ended), kMaxDeaf, [this] { process_.kill(); });
}

void ServiceChannel::finish(std::function<void()> on_finished) {
  finishing_ = true;
  hang_up(std::move(on_finished), kMaxLastWords, [this] { lost(""); });
}

// It hears the end, and is still heard, up to the limit.
void ServiceChannel::hang_up(std::function<void()> on_ended, std::chrono::seconds limit,
                             std::function<void()> at_limit) {
  on_ended_ = std::move(on_ended);
  cancel(retry_timer_);
  if (!socket_) return lost("");
  queue_.clear();
  cancel(deaf_timer_);
  ::shutdown(socket_.get(), SHUT_WR);
  listen();
  deaf_timer_ = loop_.after(limit, [this, at_limit = std::move(at_limit)] {
    deaf_timer_.reset();
    at_limit();
  });
}

void ServiceChannel::disconnect() {
  queue_.clear();
  cancel(deaf_timer_);
  if (!socket_) return;
  loop_.unwatch(socket_.get());
  socket_.reset();
}

void ServiceChannel::close() {
  on_ended_ = nullptr;
  cancel(retry_timer_);
  disconnect();
  process_.channels_.erase(this);
}

void ServiceChannel::cancel(std::optional<os::EventLoop::TimerId>& timer) {
  if (timer) loop_.cancel(*timer);
  timer.reset();
}

}  // namespace sallyport::session
