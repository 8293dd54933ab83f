#include "session/service_process.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "os/unix_socket.h"
#include "session/service_channel.h"
#include "wire/messages.h"

namespace sallyport::session {

ServiceProcess::ServiceProcess(os::EventLoop& loop, std::string program_name)
    : loop_(loop), program_name_(std::move(program_name)) {}

ServiceProcess::~ServiceProcess() {
  stop();
}

Status ServiceProcess::start(std::optional<os::Ids> become, bool system_roots) {
  if (started_) return {};
  become_ = std::move(become);
  system_roots_ = system_roots;
  if (auto status = launch(); !status) return status;
  started_ = true;
  return {};
}

Status ServiceProcess::launch() {
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
  launched_ = os::EventLoop::Clock::now();
  control_ = std::move(ours);
  // It has nothing to say here; its end is all there is to hear.
  loop_.watch(control_.get(), POLLIN, [this](short) { died(); });
  // One that is gone already shows as the end of its socket.
  const auto message = wire::encode(wire::ToService(wire::ServiceStart{system_roots_}));
  (void)os::send_packet(control_.get(), message);
  return {};
}

Result<Fd> ServiceProcess::open_session() {
  auto sockets = os::socket_pair(os::SocketKind::Packet);
  if (!sockets) return fail(std::move(sockets));
  auto& [ours, theirs] = *sockets;
  if (auto status = os::set_nonblocking(ours.get()); !status) return fail(std::move(status));
  const auto message = wire::encode(wire::ToService(wire::OpenSession{}));
  if (auto sent = os::send_packet(control_.get(), message, std::array{theirs.get()}); !sent) {
    return fail(std::move(sent));
  }
  return std::move(ours);
}

void ServiceProcess::kill() {
  if (child_) (void)os::kill_child(*child_, SIGKILL);
}

std::chrono::milliseconds ServiceProcess::back_off(int restarts) {
  return std::min(kFirstBackOff * (1 << std::min(restarts, 6)), kLongestBackOff);
}

// What is called may open and close channels.
void ServiceProcess::died() {
  ++deaths_;
  if (os::EventLoop::Clock::now() - launched_ >= kStable) restarts_ = 0;
  const std::string how = fmt::format("{} died ({})", program_name_, forget());
  const bool too_often = restarts_ >= kMaxRestarts;
  restart_later();
  for (ServiceChannel* channel : std::set(channels_)) {
    if (!channels_.contains(channel)) continue;
    if (too_often) {
      channel->give_up({Reason::ProcessDied, fmt::format("{}, for the {}th time", how, restarts_)});
    } else {
      channel->lost(how);
    }
  }
}

void ServiceProcess::restart_later() {
  restart_timer_ = loop_.after(back_off(restarts_++), [this] {
    restart_timer_.reset();
    const auto launched = launch();
    if (!launched) restart_later();
    for (ServiceChannel* channel : std::set(channels_)) {
      if (!channels_.contains(channel)) continue;
      launched ? channel->connect() : channel->give_up(launched.error());
    }
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
  started_ = false;
  (void)forget();
}

}  // namespace sallyport::session
