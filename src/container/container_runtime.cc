#include "container/container_runtime.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>

#include <filesystem>
#include <utility>

#include "base/text.h"
#include "container/first_program.h"
#include "container/joined_namespace.h"
#include "engine/container.h"
#include "os/process.h"

namespace sallyport::container {
namespace {

std::int64_t host_memory() {
  struct sysinfo info{};
  if (::sysinfo(&info) != 0) return 0;
  return static_cast<std::int64_t>(info.totalram) * info.mem_unit;
}

}  // namespace

ContainerRuntime::ContainerRuntime(os::EventLoop& loop, Host& host, Wish wish, OnEnd on_end)
    : Runtime(std::move(on_end)),
      host_(host),
      wish_(std::move(wish)),
      pause_(loop, host, container_name(wish_.session, "-pause"),
             [this] { fall("its pause, " + pause_.name() + ", ended"); }),
      workload_(loop, host, container_name(wish_.session, ""),
                [this] { fall("its container, " + workload_.name() + ", ended"); }) {}

ContainerRuntime::~ContainerRuntime() {
  host_.release(pause_.id(), wish_.session);
  if (engaged_ && !over_) host_.drop(wish_.session);
}

void ContainerRuntime::make_namespaces(OnNamespaces on_made) {
  on_made_ = std::move(on_made);
  call_ = host_.when_ready([this](const Status& ready) {
    if (!ready) return std::exchange(on_made_, nullptr)(ready);
    on_host_ready();
  });
}

void ContainerRuntime::on_host_ready() {
  const Limits& limits = wish_.limits;
  const bool limited = limits.memory_bytes != 0 || limits.pids != 0 || limits.nano_cpus != 0;
  if (limited && !host_.dialect().limits) {
    return std::exchange(on_made_, nullptr)(
        fail(Reason::BadRequest,
             "Podman without root cannot limit memory, processes and processors with cgroup "
             "v1: leave the limits out, or boot with cgroup v2"));
  }
  engaged_ = true;
  host_.add(wish_.session);
  call_ = host_.engine().inspect_image(wish_.image, [this](Result<engine::ImageState> image) {
    if (!image && image.error().reason == Reason::EngineNotFound) {
      return std::exchange(on_made_, nullptr)(
          fail(Reason::EngineNotFound, fmt::format("the engine has no image {0}: `{1} pull {0}` gets it",
                                                   escaped(wish_.image), host_.command())));
    }
    if (!image) return std::exchange(on_made_, nullptr)(std::unexpected(std::move(image).error()));
    image_ = std::move(*image);
    if (auto status = make_pause(); !status) std::exchange(on_made_, nullptr)(status);
  });
}

Status ContainerRuntime::make_pause() {
  auto folder = SessionFolder::make(host_.settings().folder, wish_.session);
  if (!folder) return fail(std::move(folder));
  folder_.emplace(std::move(*folder));
  const std::string socket = folder_->path() + "/pause";
  pause_.launch(pause_spec({.image = host_.pause_image(),
                            .ids = wish_.ids,
                            .socket = socket,
                            .labels = labels(),
                            .dialect = host_.dialect()}),
                socket, -1, [this](const Result<engine::ContainerState>& state) { on_pause(state); });
  return {};
}

void ContainerRuntime::on_pause(const Result<engine::ContainerState>& state) {
  const auto on_made = std::exchange(on_made_, nullptr);
  if (!state) return on_made(std::unexpected(state.error()));
  host_.claim(pause_.id(), wish_.session);
  auto net = pause_.open_namespace("net");
  if (!net) return on_made(fail(std::move(net)));
  auto joined = join_namespace(*net);
  if (!joined) return on_made(fail(std::move(joined)));
  builder_.emplace(std::move(joined->builder));
  namespaces_ = std::move(joined->namespaces);
  host_.add_network(namespaces_.net, wish_.session);
  host_.tell_joinable();
  on_made({});
}

void ContainerRuntime::start(const sandbox::Contents& contents, OnInit on_init) {
  if (ending_ || over_) return on_init(fail(Reason::ProcessDied, how_));
  auto spec = workload(contents);
  if (!spec) return on_init(fail(std::move(spec)));
  on_init_ = std::move(on_init);
  workload_.launch(*spec, folder_->path() + "/init", namespaces_.net.get(),
                   [this](const Result<engine::ContainerState>& state) { on_workload(state); });
}

Result<engine::ContainerSpec> ContainerRuntime::workload(const sandbox::Contents& contents) const {
  if (auto status = check_volumes(contents.mounts); !status) return fail(std::move(status));
  auto program = os::find_own_program("sallyport-init");
  if (!program) return fail(std::move(program));
  auto files = folder_->write(sandbox::files_over_image(contents.profile, sandbox::kHostname));
  if (!files) return fail(std::move(files));
  return workload_spec({.image = image_.id,
                        .image_environment = image_.environment,
                        .pause = pause_.id(),
                        .ids = wish_.ids,
                        .home = wish_.home,
                        .init_program = *program,
                        .socket = folder_->path() + "/init",
                        .files = std::move(*files),
                        .limits = wish_.limits,
                        .host_memory_bytes = host_memory(),
                        .labels = labels(),
                        .dialect = host_.dialect()},
                       contents.mounts);
}

// The engine would make its place in the user's own folder.
Status ContainerRuntime::check_volumes(const std::vector<sandbox::Mount>& mounts) const {
  for (const std::string& volume : image_.volumes) {
    const std::string place = std::filesystem::path(volume).lexically_normal();
    for (const sandbox::Mount& mount : mounts) {
      if (!place.starts_with(mount.path + "/")) continue;
      return fail(Reason::EngineRefused,
                  fmt::format("the image {} wants a volume at {}, which is in {}: mount that elsewhere",
                              escaped(wish_.image), escaped(volume), mount.path));
    }
  }
  return {};
}

void ContainerRuntime::on_workload(const Result<engine::ContainerState>& state) {
  const auto on_init = std::exchange(on_init_, nullptr);
  if (!state) return on_init(std::unexpected(state.error()));
  auto program = os::find_own_program("sallyport-init");
  if (!program) return on_init(fail(std::move(program)));
  if (auto ours = check_first_program(static_cast<pid_t>(state->pid), *program); !ours) {
    return on_init(fail(std::move(ours)));
  }
  struct stat net{};
  if (::fstat(namespaces_.net.get(), &net) != 0) return on_init(fail_errno(Reason::Internal, "fstat"));
  if (state->host.network_mode != engine::kJoinsContainer + pause_.id()) {
    return on_init(fail(Reason::EngineRefused, "the engine says that the container joined another network"));
  }
  identity_ =
      fmt::format("container {}, pause {}, image {} ({}), pid {} since {}, network namespace {}", state->id,
                  pause_.id(), escaped(wish_.image), state->image, state->pid, state->started_at, net.st_ino);
  on_init(workload_.take_control());
}

std::map<std::string, std::string> ContainerRuntime::labels() const {
  return {{kDaemonLabel, host_.settings().mark}, {kSessionLabel, wish_.session}};
}

Result<os::Doors> ContainerRuntime::open_doors(const std::optional<Rate>& new_connections) {
  auto doors = open_redirected_doors(*builder_, new_connections);
  builder_.reset();
  return doors;
}

std::string ContainerRuntime::notice() const {
  if (host_.dialect().limits) return "";
  return "Podman without root cannot limit memory, processes and processors here (cgroup v1): the sandbox "
         "has "
         "all that its user has";
}

std::vector<std::string> ContainerRuntime::environment(std::vector<std::string> ours) const {
  return sandbox::environment_over_image(image_.environment, ours, wish_.set_environment);
}

// Of itself: whoever waits for an answer is told, and ends it.
void ContainerRuntime::fall(const std::string& how) {
  if (on_init_) return std::exchange(on_init_, nullptr)(fail(Reason::ProcessDied, how));
  end(how);
}

bool ContainerRuntime::kill() {
  if (!engaged_) {
    call_.reset();
    on_made_ = nullptr;
  }
  if (!engaged_ || over_) return false;
  end("it was ended");
  return true;
}

void ContainerRuntime::end(std::string how) {
  if (ending_ || over_) return;
  how_ = std::move(how);
  on_made_ = nullptr;
  on_init_ = nullptr;
  call_.reset();
  ending_ = true;
  pause_.doom();
  // Podman removes no container whose network another one shares.
  workload_.end([this] { pause_.end([this] { on_gone(); }); });
}

void ContainerRuntime::on_gone() {
  over_ = true;
  host_.drop(wish_.session);
  builder_.reset();
  folder_.reset();
  on_end_(how_);
}

}  // namespace sallyport::container
