#include "container/member.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

#include "container/sealed.h"
#include "engine/host_config.h"

namespace sallyport::container {
namespace {

// An engine's defaults, or a plugin of its, may have changed what was asked for.
Status check_sealed(const engine::ContainerState& state, const std::set<std::string>& sources,
                    engine::Demands demands) {
  demands.judged_sources = sources;
  // Those that the image wants: nobody named one, so they are the engine's own folders.
  for (const engine::MountState& mount : state.mounts) {
    if (mount.type == "volume") demands.plain_volumes.insert(mount.name);
  }
  const auto problems = flaws(state, demands);
  if (problems.empty()) return {};
  return fail(Reason::EngineRefused,
              fmt::format("the engine made the container {} laxer than it was asked for: {}", state.name,
                          fmt::join(problems, "; ")));
}

}  // namespace

Member::~Member() {
  if (listener_) loop_.unwatch(listener_->fd());
  kill();
  if (watched_) loop_.unwatch(accepted_.pidfd.get());
  if (patience_) loop_.cancel(*patience_);
  if (launched_ && !gone_) host_.sweep_later();
}

// ---- launch ----

// An answer of the engine's to the one thing that is asked; nobody waits for it any more once this ends.
template <class T>
engine::On<T> Member::then(void (Member::*next)(T)) {
  return [this, next](Result<T> result) {
    asking_ = false;
    if (on_gone_) return remove();
    if (!result) return answer(std::unexpected(std::move(result).error()));
    (this->*next)(std::move(*result));
  };
}

void Member::ask(engine::Call call) {
  asking_ = true;
  call_ = std::move(call);
}

void Member::launch(const engine::ContainerSpec& spec, const std::string& socket, int net, OnReady on_ready,
                    std::function<void()> on_starting) {
  on_ready_ = std::move(on_ready);
  on_starting_ = std::move(on_starting);
  net_ = net;
  for (const engine::BindMount& mount : spec.mounts) sources_.insert(mount.source);
  auto listener = os::PacketListener::open(socket);
  if (!listener) {
    call_ = host_.later([this, error = listener.error()] { answer(std::unexpected(error)); });
    return;
  }
  listener_.emplace(std::move(*listener));
  loop_.watch(listener_->fd(), POLLIN, [this](short) { on_connection(); });
  launched_ = true;
  ask(host_.engine().create(spec, name_, then(&Member::on_created)));
}

void Member::on_created(std::string id) {
  id_ = std::move(id);
  ask(host_.engine().start(id_, [this](const Status& started) {
    asking_ = false;
    if (on_gone_) return remove();
    if (!started) return answer(std::unexpected(started.error()));
    on_started();
  }));
  if (on_starting_) std::exchange(on_starting_, nullptr)();
}

void Member::on_started() {
  started_ = true;
  if (listener_) {
    early_end_ = host_.engine().wait(id_, [this](const Result<std::int64_t>& code) { on_early_end(code); });
  }
  inspect_when_there();
}

void Member::on_early_end(const Result<std::int64_t>& exit_code) {
  if (!exit_code) return answer(std::unexpected(exit_code.error()));
  answer(
      fail(Reason::EngineRefused,
           fmt::format("the container {} ended with exit code {} before it was ready", name_, *exit_code)));
}

// The first that comes counts. Whether it is the right one is for check() to say.
void Member::on_connection() {
  auto accepted = listener_->accept();
  if (accepted && !*accepted) return;
  loop_.unwatch(listener_->fd());
  listener_.reset();
  early_end_.reset();
  if (!accepted) return answer(fail(std::move(accepted)));
  accepted_ = std::move(**accepted);
  watched_ = true;
  loop_.watch(accepted_.pidfd.get(), POLLIN, [this](short) { on_process_end(); });
  inspect_when_there();
}

void Member::inspect_when_there() {
  if (!started_ || listener_ || !on_ready_ || asking_) return;
  ask(host_.engine().inspect(id_, then(&Member::on_inspected)));
}

void Member::on_inspected(engine::ContainerState state) {
  for (const auto& checked :
       {check(state), check_namespace(), check_sealed(state, sources_, host_.demands())}) {
    if (!checked) return answer(std::unexpected(checked.error()));
  }
  answer(std::move(state));
}

Status Member::check(const engine::ContainerState& state) const {
  if (state.id != id_)
    return fail(Reason::EngineRefused, "the engine told of another container than " + name_);
  if (state.running && state.pid == accepted_.pid && alive()) return {};
  return fail(
      Reason::EngineRefused,
      fmt::format("the first process of the container {} is {} for the engine, but {} came: is the engine "
                  "on another host, or in a process namespace of its own?",
                  name_, state.pid, accepted_.pid));
}

Status Member::check_namespace() const {
  auto its_net = open_namespace("net");
  if (!its_net) return fail(std::move(its_net));
  if (net_ < 0) return {};
  struct stat its{};
  struct stat wanted{};
  if (::fstat(its_net->get(), &its) == 0 && ::fstat(net_, &wanted) == 0 && its.st_dev == wanted.st_dev &&
      its.st_ino == wanted.st_ino) {
    return {};
  }
  return fail(Reason::EngineRefused, "the container " + name_ + " is in another network namespace");
}

void Member::answer(Result<engine::ContainerState> answer) {
  early_end_.reset();
  if (on_ready_) std::exchange(on_ready_, nullptr)(std::move(answer));
}

// ---- afterwards ----

Result<Fd> Member::open_namespace(const char* kind) const {
  const std::string path = fmt::format("/proc/{}/ns/{}", accepted_.pid, kind);
  Fd opened(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!opened) return fail_errno(Reason::Internal, "open " + path);
  // The number may be another's by now, unless the process still lives.
  if (!alive()) return fail(Reason::ProcessDied, "the container " + name_ + " ended meanwhile");
  return opened;
}

bool Member::alive() const {
  pollfd end{accepted_.pidfd.get(), POLLIN, 0};
  return accepted_.pidfd && ::poll(&end, 1, 0) == 0;
}

void Member::on_process_end() {
  watched_ = false;
  loop_.unwatch(accepted_.pidfd.get());
  if (on_gone_) return;
  if (on_ready_)
    return answer(fail(Reason::ProcessDied, "the container " + name_ + " ended before it was ready"));
  on_death_();
}

void Member::kill() {
  if (watched_) (void)::syscall(SYS_pidfd_send_signal, accepted_.pidfd.get(), SIGKILL, nullptr, 0);
}

void Member::doom() {
  on_ready_ = nullptr;
  early_end_.reset();
  kill();
}

void Member::end(std::function<void()> on_gone) {
  on_gone_ = std::move(on_gone);
  doom();
  // What is asked is waited for, so that nothing is made after the removal.
  if (!asking_) remove();
}

// By its name: it may have been made although its making was not answered.
void Member::remove() {
  if (!launched_) {
    call_ = host_.later([this] { std::exchange(on_gone_, nullptr)(); });
    return;
  }
  if (!accepted_.pidfd || host_.info().kind == engine::EngineKind::Docker)
    return remove_now(kMaxRemovalTries);
  // It was killed; until Podman has seen that, it would fail to kill it, and not remove it.
  call_ = host_.engine().wait(id_, [this](const Result<std::int64_t>&) {
    loop_.cancel(*std::exchange(patience_, std::nullopt));
    remove_now(kMaxRemovalTries);
  });
  patience_ = loop_.after(kDeathSeenLimit, [this] {
    patience_.reset();
    remove_now(kMaxRemovalTries);
  });
}

// An engine refuses while it is still busy with the end of a process that was killed a moment ago.
void Member::remove_now(int tries) {
  call_ = host_.engine().remove(name_, engine::Force::Yes, [this, tries](const Status& removed) {
    if (!removed && tries > 1 && removed.error().reason != Reason::EngineUnavailable) {
      patience_ = loop_.after(kRemovalInterval, [this, tries] {
        patience_.reset();
        remove_now(tries - 1);
      });
      return;
    }
    if (!removed) host_.sweep_later();
    gone_ = true;
    std::exchange(on_gone_, nullptr)();
  });
}

}  // namespace sallyport::container
