#include "session/service_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace sallyport::session {

ServiceProcess::ServiceProcess(os::EventLoop& loop, std::string program_name, std::optional<os::Ids> become,
                               Callbacks callbacks)
    : loop_(loop),
      program_name_(std::move(program_name)),
      become_(become),
      callbacks_(std::move(callbacks)) {}

ServiceProcess::~ServiceProcess() {
  stop();
}

Status ServiceProcess::start() {
  auto program = os::find_own_program(program_name_);
  if (!program) return fail(std::move(program));
  auto sockets = os::socket_pair(os::SocketKind::Packet);
  if (!sockets) return fail(std::move(sockets));
  auto& [ours, theirs] = *sockets;
  if (auto status = os::set_nonblocking(ours.get()); !status) return status;

  os::SpawnSpec spec;
  spec.program = *program;
  spec.argv = {program_name_};
  if (become_) {
    spec.argv.insert(spec.argv.end(),
                     {"--uid", std::to_string(become_->uid), "--gid", std::to_string(become_->gid)});
  }
  spec.descriptors = {{theirs.get(), os::kControlFd}, {STDERR_FILENO, STDERR_FILENO}};
  spec.working_directory = "/";
  spec.parent_death_signal = SIGKILL;
  auto child = os::spawn(spec);
  if (!child) return fail(std::move(child));

  child_ = std::move(*child);
  control_ = std::move(ours);
  listen();
  callbacks_.on_start();
  return {};
}

void ServiceProcess::listen() {
  loop_.watch(control_.get(), POLLIN, [this](short) { on_readable(); });
}

void ServiceProcess::send(std::string_view message, std::span<const int> fds) {
  if (!child_) return;
  Status sent = queue_.empty() ? os::send_packet(control_.get(), message, fds) : queue(message, fds);
  if (!sent && sent.error().reason == Reason::Overloaded && queue_.empty()) sent = queue(message, fds);
  // A failure shows as the end of its socket once it is killed, where a restart begins.
  if (!sent) (void)os::kill_child(*child_, SIGKILL);
}

Status ServiceProcess::queue(std::string_view message, std::span<const int> fds) {
  if (queue_.size() >= kMaxQueued) return fail(Reason::Overloaded, "too many messages wait");
  Message copy{.bytes = std::string(message), .fds = {}};
  for (const int fd : fds) {
    Fd duplicate(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (!duplicate) return fail_errno(Reason::Internal, "fcntl F_DUPFD_CLOEXEC");
    copy.fds.push_back(std::move(duplicate));
  }
  queue_.push_back(std::move(copy));
  if (queue_.size() > 1) return {};
  // It is heard again when it has listened: what it says would only want more answers.
  loop_.watch(control_.get(), POLLOUT, [this](short) { flush(); });
  deaf_timer_ = loop_.after(kMaxDeaf, [this] { (void)os::kill_child(*child_, SIGKILL); });
  return {};
}

void ServiceProcess::flush() {
  while (!queue_.empty()) {
    const Message& next = queue_.front();
    std::vector<int> fds;
    for (const Fd& fd : next.fds) fds.push_back(fd.get());
    if (Status sent = os::send_packet(control_.get(), next.bytes, fds); !sent) {
      if (sent.error().reason == Reason::Overloaded) return;
      queue_.clear();  // it is gone, as reading from it says
      break;
    }
    queue_.pop_front();
  }
  loop_.cancel(*std::exchange(deaf_timer_, std::nullopt));
  listen();
}

void ServiceProcess::on_readable() {
  // A few at once spare calls of poll(2); not all, so that others have their turn.
  for (int i = 0; i < kMaxPacketsPerTurn; ++i) {
    auto packet = os::recv_packet(control_.get());
    if (packet && !*packet) return;
    // An error: over our limits, so not the program that we started.
    if (!packet || (*packet)->end) return died();
    callbacks_.on_packet(std::move(**packet));
    if (!control_ || !queue_.empty()) return;
  }
}

void ServiceProcess::died() {
  const std::string how = fmt::format("{} died ({})", program_name_, forget());
  if (restarts_ >= kMaxRestarts) {
    return callbacks_.on_failure(
        Error{Reason::ProcessDied, fmt::format("{}, for the {}th time", how, restarts_ + 1)});
  }
  callbacks_.on_death(how);
  const auto back_off = std::min(kFirstBackOff * (1 << std::min(restarts_, 6)), kLongestBackOff);
  ++restarts_;
  restart_timer_ = loop_.after(back_off, [this] {
    restart_timer_.reset();
    if (auto status = start(); !status) callbacks_.on_failure(std::move(status).error());
  });
}

std::string ServiceProcess::forget() {
  if (!child_) return "";
  loop_.unwatch(control_.get());
  control_.reset();
  queue_.clear();
  if (deaf_timer_) loop_.cancel(*std::exchange(deaf_timer_, std::nullopt));
  (void)os::kill_child(*child_, SIGKILL);
  const auto ended = os::wait_child(*child_);
  child_.reset();
  return ended ? ended->text() : ended.error().detail;
}

void ServiceProcess::stop() {
  if (restart_timer_) loop_.cancel(*restart_timer_);
  restart_timer_.reset();
  (void)forget();
}

}  // namespace sallyport::session
