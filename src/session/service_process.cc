#include "session/service_process.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>

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
  loop_.watch(control_.get(), POLLIN, [this](short) { on_readable(); });
  callbacks_.on_start();
  return {};
}

void ServiceProcess::send(std::string_view message, std::span<const int> fds) {
  if (!child_) return;
  // A failure shows as the end of its socket once it is killed, where a restart begins.
  if (!os::send_packet(control_.get(), message, fds)) (void)os::kill_child(*child_, SIGKILL);
}

void ServiceProcess::on_readable() {
  auto packet = os::recv_packet(control_.get());
  if (!packet) return died();  // over our limits: not the program that we started
  if (!*packet) return;
  if ((*packet)->end) return died();
  callbacks_.on_packet(std::move(**packet));
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
