#include "container/specs.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "container/pause_image.h"
#include "os/netns.h"
#include "sandbox/profile.h"
#include "sandbox/seccomp_profile.h"
#include "sandbox/transport_refusal.h"

namespace sallyport::container {
namespace {

using engine::BindMount;
using engine::MountAccess;

// Of a session's id, in its containers' names.
constexpr std::size_t kNameCharacters = 12;

std::string user_text(os::Ids ids) {
  return fmt::format("{}:{}", ids.uid, ids.gid);
}

// One byte, not zero: with 1 the kernel also leaves out a core handler, which is a program of the host.
engine::Ulimit no_core() {
  return {.name = "core", .soft = 1, .hard = 1};
}

void speak(const Dialect& dialect, engine::ContainerSpec& spec) {
  spec.seccomp_profile = dialect.seccomp_file.empty() ? sandbox::seccomp_profile() : dialect.seccomp_file;
  spec.ulimits = dialect.ulimits;
  spec.ulimits.push_back(no_core());
  if (dialect.keeps_id) {
    // Only the owner of the network may mount its /sys.
    spec.user_namespace =
        spec.join_network_of.empty() ? "keep-id" : engine::kJoinsContainer + spec.join_network_of;
  }
  if (!dialect.limits) spec.pids = spec.memory_bytes = spec.nano_cpus = 0;
}

std::map<std::string, std::string> folders_in_memory(const WorkloadWish& wish) {
  const std::string owner = wish.dialect.engine == engine::EngineKind::Podman
                                ? "U,notmpcopyup"
                                : fmt::format("uid={},gid={}", wish.ids.uid, wish.ids.gid);
  std::map<std::string, std::string> folders;
  for (const std::string& folder : sandbox::private_folders(wish.home)) {
    const bool shared = folder == "/tmp" || folder == "/var/tmp";
    folders[folder] = fmt::format("rw,exec,nosuid,nodev,{},mode={}", owner, shared ? "1777" : "0700");
  }
  return folders;
}

// The image's variables are for the workload. sallyport-init would read them too (GLIBC_TUNABLES), and has a
// name for no other value than none.
std::vector<std::string> emptied(const std::vector<std::string>& environment) {
  std::vector<std::string> result;
  for (const std::string& line : environment) {
    const std::string name = line.substr(0, line.find('='));
    if (!name.empty()) result.push_back(name + "=");
  }
  return result;
}

Result<BindMount> bind_of(const sandbox::Mount& mount) {
  std::error_code error;
  const auto source =
      std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", mount.source.get()), error);
  if (error) return fail(Reason::Internal, mount.path + ": " + error.message());
  return BindMount{
      .source = source.string(),
      .target = mount.path,
      .access = mount.access == sandbox::Access::ReadOnly ? MountAccess::ReadOnly : MountAccess::ReadWrite};
}

bool lies_in_a_mount(const std::string& path, const std::vector<sandbox::Mount>& mounts) {
  return std::ranges::any_of(mounts, [&](const sandbox::Mount& mount) {
    return path == mount.path || path.starts_with(mount.path + "/");
  });
}

Status add_mounts(engine::ContainerSpec& spec, const std::vector<sandbox::Mount>& mounts) {
  for (const sandbox::Mount& mount : mounts) {
    auto bind = bind_of(mount);
    if (!bind) return fail(std::move(bind));
    // The user's own spelling of the path leads there too.
    if (!mount.alias.empty() && !lies_in_a_mount(mount.alias, mounts)) {
      spec.mounts.push_back({.source = bind->source, .target = mount.alias, .access = bind->access});
    }
    spec.mounts.push_back(std::move(*bind));
  }
  return {};
}

}  // namespace

std::string container_name(const std::string& session, std::string_view suffix) {
  return fmt::format("sallyport-{}{}", session.substr(0, kNameCharacters), suffix);
}

engine::ContainerSpec pause_spec(const PauseWish& wish) {
  engine::ContainerSpec spec;
  spec.image = wish.image;
  spec.entrypoint = {kPauseProgram, "hold", kPauseSocketInside};
  spec.user = user_text(wish.ids);
  spec.hostname = sandbox::kHostname;
  spec.labels = wish.labels;
  spec.name_servers = {os::kSandboxAddress};
  // Many a program asks for its own name.
  spec.mounts = {{.source = wish.socket, .target = kPauseSocketInside}};
  spec.pids = kPausePids;
  spec.memory_bytes = kPauseMemoryBytes;
  speak(wish.dialect, spec);
  return spec;
}

engine::ContainerSpec prober_spec(const PauseWish& wish, const std::string& holder) {
  engine::ContainerSpec spec = pause_spec(wish);
  spec.entrypoint = {kPauseProgram, "connect", kPauseSocketInside};
  spec.join_network_of = holder;
  spec.hostname.clear();
  spec.name_servers.clear();
  return spec;
}

Result<engine::ContainerSpec> workload_spec(const WorkloadWish& wish,
                                            const std::vector<sandbox::Mount>& mounts) {
  engine::ContainerSpec spec;
  spec.image = wish.image;
  spec.entrypoint = {sandbox::kInitPath, "connect", sandbox::kControlPath};
  spec.environment = emptied(wish.image_environment);
  spec.user = user_text(wish.ids);
  spec.working_directory = "/";
  spec.labels = wish.labels;
  spec.join_network_of = wish.pause;
  spec.tmpfs = folders_in_memory(wish);
  spec.mounts = {{.source = wish.socket, .target = sandbox::kControlPath}};
  for (const char* path : {sandbox::kInitPath, sandbox::kSshPath, sandbox::kGitProxyPath}) {
    spec.mounts.push_back({.source = wish.init_program, .target = path});
  }
  for (const PlacedFile& file : wish.files) {
    spec.mounts.push_back({.source = file.source, .target = file.target});
  }
  if (auto status = add_mounts(spec, mounts); !status) return fail(std::move(status));
  spec.pids = wish.limits.pids != 0 ? wish.limits.pids : kDefaultPids;
  spec.memory_bytes = wish.limits.memory_bytes != 0 ? wish.limits.memory_bytes : wish.host_memory_bytes / 2;
  spec.nano_cpus = wish.limits.nano_cpus;
  speak(wish.dialect, spec);
  return spec;
}

}  // namespace sallyport::container
