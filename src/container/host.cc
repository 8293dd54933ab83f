#include "container/host.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "os/process.h"
#include "os/safe_path.h"
#include "sandbox/seccomp_profile.h"

namespace sallyport::container {

class Host::Waiter : public engine::Pending {
 public:
  Waiter(std::list<Waiter*>& all, engine::OnDone on_ready) : all_(all), on_ready_(std::move(on_ready)) {
    place_ = all_.insert(all_.end(), this);
  }
  ~Waiter() override { leave(); }

  // It may be destroyed by that.
  void call(const Status& status) {
    leave();
    std::exchange(on_ready_, nullptr)(status);
  }

 private:
  void leave() {
    if (on_ready_ && place_) all_.erase(*std::exchange(place_, std::nullopt));
  }

  std::list<Waiter*>& all_;
  std::optional<std::list<Waiter*>::iterator> place_;
  engine::OnDone on_ready_;
};

namespace {

// Where a package installs packaging/seccomp.json.
constexpr char kSeccompFile[] = "/usr/share/sallyport/seccomp.json";

class Later : public engine::Pending {
 public:
  Later(os::EventLoop& loop, std::function<void()> callback) : loop_(loop), callback_(std::move(callback)) {
    timer_ = loop_.after(std::chrono::milliseconds(0), [this] {
      timer_.reset();
      std::exchange(callback_, nullptr)();
    });
  }
  ~Later() override {
    if (timer_) loop_.cancel(*timer_);
  }

 private:
  os::EventLoop& loop_;
  std::function<void()> callback_;
  std::optional<os::EventLoop::TimerId> timer_;
};

// As the daemon's own.
engine::Ulimit own_limit(const char* name, __rlimit_resource_t resource) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0) limit = {RLIM_INFINITY, RLIM_INFINITY};
  return {.name = name,
          .soft = static_cast<std::int64_t>(limit.rlim_max),
          .hard = static_cast<std::int64_t>(limit.rlim_max)};
}

// What an engine must be able to do for a sandbox.
Status check(const engine::EngineInfo& info) {
  if (!info.seccomp) {
    return fail(Reason::EngineRefused,
                "the container engine has no seccomp, without which a container is no sandbox");
  }
  if (info.privilege == engine::Privilege::Root && ::geteuid() != 0) {
    return fail(Reason::EngineRefused,
                "the container engine runs as root and this daemon does not, so it cannot watch over its "
                "containers: use root's daemon (systemctl start sallyportd)");
  }
  if (info.privilege == engine::Privilege::Rootless && ::geteuid() == 0) {
    return fail(Reason::EngineRefused,
                "the container engine is a user's and this daemon is root's: use the user's own daemon "
                "(systemctl --user start sallyportd)");
  }
  const bool is_docker = info.kind == engine::EngineKind::Docker;
  if (info.user_namespaces || (info.privilege == engine::Privilege::Rootless && is_docker)) {
    return fail(
        Reason::EngineRefused,
        "the container engine gives containers other uids than the host's (userns-remap, or Docker without "
        "root), so that a workspace would belong to nobody inside: use Docker with root, or Podman");
  }
  return {};
}

}  // namespace

Host::Host(os::EventLoop& loop, Settings settings)
    : loop_(loop), settings_(std::move(settings)), client_(loop, settings_.engine_socket), engine_(client_) {}

Host::~Host() {
  if (info_.kind == engine::EngineKind::Podman) ::unlink(seccomp_file().c_str());
  if (sweep_timer_) loop_.cancel(*sweep_timer_);
}

void Host::recover() {
  std::error_code ignored;
  if (!std::filesystem::exists(settings_.folder, ignored)) return;
  for (const auto& left : std::filesystem::directory_iterator(settings_.folder, ignored)) {
    std::filesystem::remove_all(left.path(), ignored);
    // Its containers have ended with the daemon, and are removed once the engine is known.
    if (!recovery_) recovery_ = when_ready([](const Status&) {});
  }
}

engine::Call Host::later(std::function<void()> callback) {
  return std::make_unique<Later>(loop_, std::move(callback));
}

engine::Call Host::when_ready(engine::OnDone on_ready) {
  auto waiter = std::make_unique<Waiter>(waiters_, std::move(on_ready));
  if (state_ == State::Unknown) ask();
  // Whoever tidies up images may have removed ours since.
  if (state_ == State::Ready) {
    state_ = State::Looking;
    look_for_pause_image();
  }
  return waiter;
}

void Host::ask() {
  state_ = State::Asking;
  call_ = client_.negotiate([this](const Result<engine::EngineInfo>& info) { on_info(info); });
}

void Host::on_info(const Result<engine::EngineInfo>& info) {
  if (!info) return finish(std::unexpected(info.error()));
  info_ = *info;
  if (auto status = check(info_); !status) return finish(status);
  if (info_.kind == engine::EngineKind::Podman) {
    if (auto status = write_seccomp_file(); !status) return finish(status);
  }
  auto image = own_pause_image();
  if (!image) return finish(std::unexpected(image.error()));
  look_for_pause_image();
}

Result<PauseImage> Host::own_pause_image() {
  auto program = os::find_own_program("sallyport-init");
  if (!program) return fail(std::move(program));
  auto image = make_pause_image(*program);
  if (image) pause_image_ = fmt::format("{}:{}", kPauseRepository, image->tag);
  return image;
}

void Host::look_for_pause_image() {
  call_ = engine_.inspect_image(pause_image_, [this](const Result<engine::ImageState>& found) {
    if (!found && found.error().reason == Reason::EngineNotFound) return import_pause_image();
    finish(found ? Status() : std::unexpected(found.error()));
  });
}

void Host::import_pause_image() {
  auto image = own_pause_image();
  if (!image) return finish(std::unexpected(image.error()));
  call_ = engine_.import_image(
      std::move(image->tar), kPauseRepository, image->tag,
      [this](const Result<std::string>& id) { finish(id ? Status() : std::unexpected(id.error())); });
}

void Host::finish(const Status& status) {
  if (status && state_ == State::Asking) sweep();
  state_ = status ? State::Ready : State::Unknown;
  while (!waiters_.empty()) waiters_.front()->call(status);
}

bool Host::claim(const std::string& container, const std::string& session) {
  return holders_.emplace(container, session).second;
}

void Host::release(const std::string& container, const std::string& session) {
  const auto holder = holders_.find(container);
  if (holder != holders_.end() && holder->second == session) holders_.erase(holder);
}

std::optional<std::string> Host::session_of(const std::string& container) const {
  const auto holder = holders_.find(container);
  if (holder == holders_.end()) return std::nullopt;
  return holder->second;
}

void Host::add_network(const Fd& net, const std::string& session) {
  struct stat status{};
  if (::fstat(net.get(), &status) == 0) networks_[session] = {status.st_dev, status.st_ino};
}

std::optional<std::string> Host::session_around(pid_t process) const {
  struct stat status{};
  if (::stat(fmt::format("/proc/{}/ns/net", process).c_str(), &status) != 0) return std::nullopt;
  const std::pair network(status.st_dev, status.st_ino);
  for (const auto& [session, known] : networks_) {
    if (known == network) return session;
  }
  return std::nullopt;
}

engine::Demands Host::demands() const {
  engine::Demands demands;
  demands.seccomp_profile = sandbox::seccomp_profile();
  demands.seccomp_profile_path = kSeccompFile;
  demands.cgroup_version = info_.cgroups;
  demands.engine = info_.kind;
  if (info_.kind == engine::EngineKind::Podman) demands.seccomp_profile_path = seccomp_file();
  return demands;
}

Dialect Host::dialect() const {
  if (info_.kind == engine::EngineKind::Docker) return {};
  return {.engine = info_.kind,
          .seccomp_file = seccomp_file(),
          .ulimits = {own_limit("nofile", RLIMIT_NOFILE), own_limit("nproc", RLIMIT_NPROC)},
          .keeps_id = rootless(),
          .limits = !rootless() || info_.cgroups == engine::CgroupVersion::Two};
}

const char* Host::command() const {
  return info_.kind == engine::EngineKind::Podman ? "podman" : "docker";
}

Status Host::write_seccomp_file() {
  if (auto made = os::make_private_folder(settings_.folder); !made) return fail(std::move(made));
  std::ofstream file(seccomp_file(), std::ios::trunc);
  file << sandbox::seccomp_profile() << std::flush;
  return file ? Status() : fail_errno(Reason::Internal, "write " + seccomp_file());
}

void Host::sweep() {
  listing_ = engine_.list(fmt::format("{}={}", kDaemonLabel, settings_.mark),
                          [this](const Result<std::vector<engine::ListedContainer>>& containers) {
                            if (containers) return remove_nobodys(*containers);
                            sweep_later();
                          });
}

void Host::remove_nobodys(const std::vector<engine::ListedContainer>& containers) {
  for (const engine::ListedContainer& container : containers) {
    const auto session = container.labels.find(kSessionLabel);
    if (session != container.labels.end() && live_.contains(session->second)) continue;
    if (removals_.contains(container.id)) continue;
    removals_[container.id] =
        engine_.remove(container.id, engine::Force::Yes, [this, id = container.id](const Status& removed) {
          if (!removed) sweep_later();
          removals_.erase(id);
        });
  }
}

void Host::sweep_later() {
  if (sweep_timer_) return;
  sweep_timer_ = loop_.after(kSweepInterval, [this] {
    sweep_timer_.reset();
    sweep();
  });
}

}  // namespace sallyport::container
