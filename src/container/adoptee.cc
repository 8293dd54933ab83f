#include "container/adoptee.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

#include "base/text.h"
#include "container/sealed.h"
#include "engine/host_config.h"

namespace sallyport::container {
namespace {

bool is_same_namespace(const Fd& one, const char* other) {
  struct stat left{};
  struct stat right{};
  return ::fstat(one.get(), &left) == 0 && ::stat(other, &right) == 0 && left.st_ino == right.st_ino;
}

}  // namespace

Adoptee::~Adoptee() {
  if (watched_) {
    loop_.unwatch(pidfd_.get());
    (void)::syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0);
  }
  if (!state_.id.empty()) host_.release(state_.id, session_);
}

void Adoptee::adopt(const std::string& container, OnAdopted on_adopted) {
  on_adopted_ = std::move(on_adopted);
  call_ = host_.engine().inspect(container, [this](Result<engine::ContainerState> state) {
    if (!state) return answer(std::unexpected(std::move(state).error()));
    on_first_look(std::move(state));
  });
}

void Adoptee::on_first_look(Result<engine::ContainerState> state) {
  state_ = std::move(*state);
  if (!state_.running) {
    return answer(fail(Reason::BadRequest, fmt::format("the container {0} does not run: `{1} start {0}`",
                                                       escaped(state_.name), host_.command())));
  }
  if (!host_.claim(state_.id, session_)) {
    state_.id.clear();
    return answer(fail(Reason::BadRequest,
                       fmt::format("the container {} has a session already", escaped(state_.name))));
  }
  for (const engine::MountState& mount : state_.mounts) {
    if (mount.type == "volume") volumes_.push_back(mount.name);
  }
  look_at_next_volume();
}

void Adoptee::look_at_next_volume() {
  if (volumes_.empty()) return judge();
  const std::string name = std::move(volumes_.back());
  volumes_.pop_back();
  call_ = host_.engine().inspect_volume(name, [this, name](const Result<engine::VolumeState>& volume) {
    if (volume && volume->plain()) plain_volumes_.insert(name);
    look_at_next_volume();
  });
}

void Adoptee::judge() {
  engine::Demands demands = host_.demands();
  demands.plain_volumes = plain_volumes_;
  auto problems = flaws(state_, demands);
  if (state_.host.network_mode != "none" && problems.empty()) {
    problems.push_back("NetworkMode joins another container: that one is to be adopted");
  }
  if (!problems.empty()) return refuse(problems);
  pidfd_.reset(static_cast<int>(::syscall(SYS_pidfd_open, state_.pid, 0)));
  if (!pidfd_) return answer(fail_errno(Reason::Internal, "pidfd_open"));
  // The number may have been another's when it was opened: the engine still means that one, if it lives.
  call_ = host_.engine().inspect(state_.id, [this](const Result<engine::ContainerState>& again) {
    if (!again) return answer(std::unexpected(again.error()));
    on_second_look(again);
  });
}

void Adoptee::on_second_look(const Result<engine::ContainerState>& again) {
  if (!again->running || again->pid != state_.pid || again->started_at != state_.started_at || !alive()) {
    return answer(
        fail(Reason::ProcessDied, fmt::format("the container {} ended meanwhile", escaped(state_.name))));
  }
  auto net = open_namespace("net");
  if (!net) return answer(fail(std::move(net)));
  if (is_same_namespace(*net, "/proc/self/ns/net")) {
    return answer(fail(Reason::EngineRefused, "the container is in the host's own network namespace"));
  }
  watched_ = true;
  loop_.watch(pidfd_.get(), POLLIN, [this](short) { on_process_end(); });
  answer({});
}

void Adoptee::refuse(const std::vector<std::string>& problems) {
  const std::string text =
      fmt::format("the container {} was stopped, since it is laxer than a sandbox may be:\n  {}",
                  escaped(state_.name), fmt::join(problems, "\n  "));
  call_ = host_.engine().kill(state_.id, "KILL",
                              [this, text](const Status&) { answer(fail(Reason::EngineRefused, text)); });
}

void Adoptee::answer(const Status& status) {
  if (on_adopted_) std::exchange(on_adopted_, nullptr)(status);
}

Result<Fd> Adoptee::open_namespace(const char* kind) const {
  const std::string path = fmt::format("/proc/{}/ns/{}", state_.pid, kind);
  Fd opened(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!opened) return fail_errno(Reason::Internal, "open " + path);
  if (!alive())
    return fail(Reason::ProcessDied, fmt::format("the container {} ended meanwhile", state_.name));
  return opened;
}

bool Adoptee::alive() const {
  pollfd end{pidfd_.get(), POLLIN, 0};
  return pidfd_ && ::poll(&end, 1, 0) == 0;
}

void Adoptee::end(std::function<void()> on_gone) {
  on_gone_ = std::move(on_gone);
  on_adopted_ = nullptr;
  if (watched_) {
    (void)::syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0);
    return;
  }
  call_ = host_.later([this] { std::exchange(on_gone_, nullptr)(); });
}

void Adoptee::on_process_end() {
  watched_ = false;
  loop_.unwatch(pidfd_.get());
  if (on_gone_) return std::exchange(on_gone_, nullptr)();
  on_death_();
}

}  // namespace sallyport::container
