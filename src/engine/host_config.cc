#include "engine/host_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

#include "base/text.h"
#include "engine/container.h"

namespace sallyport::engine {
namespace {

constexpr std::uint64_t kLastUid = UINT32_MAX - 1;  // the one behind it means "no user"

// A source that is one of these, lies in one or contains one gives the host away.
constexpr std::string_view kHostFolders[] = {
    "/etc",
    "/proc",
    "/sys",
    "/dev",
    "/run",
    "/var/run",
    "/boot",
    "/root",
    "/var/lib/docker",
    "/var/lib/containerd",
    "/var/lib/containers",
    "/var/lib/sallyport",
};
// Wherever they lie: who speaks to an engine has the host.
constexpr std::string_view kEngineSockets[] = {"docker.sock", "podman.sock", "containerd.sock", "crio.sock"};

// They make namespaces as we know them; a virtual machine or a kernel in user space would have its own
// network.
constexpr std::string_view kRuntimes[] = {"", "runc", "crun", "io.containerd.runc.v2"};

// What every Podman gives a container that is not told otherwise; it lists those of them that were dropped.
constexpr std::string_view kPodmanCapabilities[] = {"CHOWN",   "DAC_OVERRIDE",     "FOWNER",    "FSETID",
                                                    "KILL",    "NET_BIND_SERVICE", "SETFCAP",   "SETGID",
                                                    "SETPCAP", "SETUID",           "SYS_CHROOT"};

class Judge {
 public:
  Judge(const ContainerState& container, const Demands& demands)
      : container_(container), host_(container.host), demands_(demands) {}

  std::vector<std::string> judge() {
    capabilities();
    security_options();
    namespaces();
    devices();
    mounts();
    kernel();
    user();
    return std::move(problems_);
  }

 private:
  // "Privileged is true: remove `privileged: true`".
  void add(std::string_view field, std::string_view what, std::string_view remedy) {
    problems_.push_back(fmt::format("{} {}: {}", field, what, remedy));
  }
  void none_of(std::string_view field, const std::vector<std::string>& values, std::string_view key) {
    for (const std::string& value : values) {
      add(field, fmt::format("has \"{}\"", escaped(value)), fmt::format("remove it from `{}:`", key));
    }
  }

  void capabilities();
  bool drops_all() const;
  void security_options();
  void seccomp(std::string_view value);
  void namespaces();
  void own_namespace(std::string_view field, const std::string& mode, std::string_view key);
  void devices();
  void mounts();
  void mount(const MountState& mount);
  void source(const std::string& field, const std::string& source);
  void kernel();
  void covered(std::string_view field, const std::optional<std::vector<std::string>>& paths,
               std::string_view path);
  void user();

  const ContainerState& container_;
  const HostConfig& host_;
  const Demands& demands_;
  std::vector<std::string> problems_;
};

bool Judge::drops_all() const {
  const auto drops = [this](std::string_view wanted) {
    return std::ranges::any_of(host_.cap_drop,
                               [&](const std::string& name) { return equals_ignoring_case(name, wanted); });
  };
  if (drops("ALL")) return true;
  return demands_.engine == EngineKind::Podman && std::ranges::all_of(kPodmanCapabilities, drops);
}

void Judge::capabilities() {
  if (host_.privileged) add("Privileged", "is true", "remove `privileged: true`");
  none_of("CapAdd", host_.cap_add, "cap_add");
  if (!drops_all()) {
    add("CapDrop",
        fmt::format("is [{}], not ALL", escaped(fmt::format("{}", fmt::join(host_.cap_drop, ", ")))),
        "add `cap_drop: [ALL]`");
  }
}

// Both spellings: "seccomp=..." and, of old, "seccomp:...".
std::pair<std::string_view, std::string_view> name_and_value(std::string_view option) {
  const std::size_t end = option.find_first_of("=:");
  if (end == std::string_view::npos) return {option, {}};
  return {option.substr(0, end), option.substr(end + 1)};
}

void Judge::security_options() {
  bool no_new_privileges = false;
  bool has_seccomp = false;
  for (const std::string& option : host_.security_opt) {
    const auto [name, value] = name_and_value(option);
    const bool plain = value.empty() || value == "true";
    if (name == "no-new-privileges" && plain) {
      no_new_privileges = true;
    } else if (name == "seccomp") {
      has_seccomp = true;
      seccomp(value);
    } else if ((name == "apparmor" && value != "unconfined") || (name == "label" && value != "disable")) {
      continue;
    } else if (name != "no-new-privileges") {
      add("SecurityOpt", fmt::format("has \"{}\"", escaped(option)), "remove it from `security_opt:`");
    }
  }
  if (!no_new_privileges) {
    add("SecurityOpt", "lacks no-new-privileges", "add `security_opt: [\"no-new-privileges:true\"]`");
  }
  if (!has_seccomp) seccomp("");
}

std::optional<boost::json::value> as_json(std::string_view text) {
  boost::system::error_code error;
  boost::json::value value = boost::json::parse({text.data(), text.size()}, error);
  if (error) return std::nullopt;
  return value;
}

void Judge::seccomp(std::string_view value) {
  // Clients send the file's text spelled anew, so what it says is compared.
  const auto theirs = as_json(value);
  const auto ours = as_json(demands_.seccomp_profile);
  if (theirs && ours && *theirs == *ours) return;
  if (demands_.engine == EngineKind::Podman && value == demands_.seccomp_profile_path) return;
  const std::string_view what = value.empty()
                                    ? "has no seccomp profile (the engine's own lets too much through)"
                                : value == "unconfined" ? "has \"seccomp=unconfined\""
                                                        : "has another seccomp profile than ours";
  add("SecurityOpt", what,
      fmt::format("write `security_opt: [\"seccomp={}\"]`", demands_.seccomp_profile_path));
}

void Judge::own_namespace(std::string_view field, const std::string& mode, std::string_view key) {
  if (mode.empty() || mode == "private") return;
  add(field, fmt::format("is \"{}\"", escaped(mode)), fmt::format("remove `{}: {}`", key, escaped(mode)));
}

void Judge::namespaces() {
  const bool joins = host_.network_mode.starts_with(kJoinsContainer) && host_.network_mode != kJoinsContainer;
  if (host_.network_mode != "none" && !joins) {
    add("NetworkMode", fmt::format("is \"{}\"", escaped(host_.network_mode)),
        "write `network_mode: none` (and remove `networks:` and `ports:`)");
  }
  for (const std::string& network : container_.networks) {
    if (network == "none") continue;
    add("NetworkSettings.Networks", fmt::format("has \"{}\"", escaped(network)),
        fmt::format("disconnect it: docker network disconnect {} {}", escaped(network),
                    escaped(container_.name)));
  }
  own_namespace("PidMode", host_.pid_mode, "pid");
  // Shareable and none are no less ours than private.
  if (host_.ipc_mode != "shareable" && host_.ipc_mode != "none") {
    own_namespace("IpcMode", host_.ipc_mode, "ipc");
  }
  own_namespace("UTSMode", host_.uts_mode, "uts");
  // Podman's without root: that of the container whose network is shared.
  const bool shares_both =
      demands_.engine == EngineKind::Podman && joins && host_.userns_mode == host_.network_mode;
  if (!shares_both) own_namespace("UsernsMode", host_.userns_mode, "userns_mode");
  // With version one the host's is what the engine gives when nobody asks for anything.
  if (demands_.cgroup_version == CgroupVersion::Two) {
    own_namespace("CgroupnsMode", host_.cgroupns_mode, "cgroup");
  }
}

void Judge::devices() {
  for (const DeviceRule& device : host_.devices) {
    add("Devices", fmt::format("has \"{}\"", escaped(device.on_host)), "remove it from `devices:`");
  }
  for (const std::string& driver : host_.device_requests) {
    add("DeviceRequests", fmt::format("asks for devices of the driver \"{}\"", escaped(driver)),
        "remove `gpus:` and `deploy: resources: reservations: devices:`");
  }
  none_of("DeviceCgroupRules", host_.device_cgroup_rules, "device_cgroup_rules");
}

bool lies_in(std::string_view path, std::string_view folder) {
  if (folder == "/") return true;
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

std::string normal(const std::string& path) {
  std::string text = std::filesystem::path(path).lexically_normal().string();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text.starts_with("//") ? text.substr(1) : text;
}

void Judge::source(const std::string& field, const std::string& source) {
  constexpr std::string_view kRemedy = "remove it from `volumes:`";
  if (demands_.judged_sources.contains(source)) return;
  const std::string path = normal(source);
  const std::string quoted = fmt::format("has \"{}\"", escaped(source));
  if (!path.starts_with('/')) return add(field, quoted + ", which is no absolute path", kRemedy);
  for (const std::string_view folder : kHostFolders) {
    if (!lies_in(path, folder) && !lies_in(folder, path)) continue;
    return add(field, fmt::format("{}, which gives away {} of the host", quoted, folder), kRemedy);
  }
  const std::string_view name = std::string_view(path).substr(path.rfind('/') + 1);
  if (std::ranges::find(kEngineSockets, name) != std::end(kEngineSockets)) {
    add(field, quoted + ", which controls the host through its container engine", kRemedy);
  }
}

void Judge::mount(const MountState& mount) {
  const std::string at = fmt::format("Mounts at {}", escaped(mount.target));
  if (mount.type == "tmpfs") return;
  if (mount.type == "volume") {
    if (demands_.plain_volumes.contains(mount.name)) return;
    return add(at,
               fmt::format("has the volume \"{}\", which is not one of the engine's own folders",
                           escaped(mount.name)),
               "give that volume no `driver:` and no `driver_opts:`, or remove it from `volumes:`");
  }
  if (mount.type != "bind") {
    return add(at, fmt::format("is of the unknown kind \"{}\"", escaped(mount.type)),
               "remove it from `volumes:`");
  }
  source(at, mount.source);
  if (mount.propagation.empty() || mount.propagation == "private" || mount.propagation == "rprivate") return;
  add(at, fmt::format("has propagation \"{}\"", escaped(mount.propagation)),
      "write `bind: {propagation: private}`");
}

void Judge::mounts() {
  for (const MountState& each : container_.mounts) mount(each);
  // They are among the mounts too, except in a container that never started.
  for (const std::string& bind : host_.binds) {
    const std::string from = bind.substr(0, bind.find(':'));
    const bool listed = std::ranges::any_of(
        container_.mounts, [&](const MountState& each) { return each.source == from || each.name == from; });
    if (!listed) source("Binds", from);
  }
  none_of("VolumesFrom", host_.volumes_from, "volumes_from");
}

void Judge::covered(std::string_view field, const std::optional<std::vector<std::string>>& paths,
                    std::string_view path) {
  if (!paths && demands_.engine == EngineKind::Podman) return;
  if (paths && std::ranges::find(*paths, path) != paths->end()) return;
  add(field, fmt::format("lacks {}", path), "remove \"systempaths=unconfined\" from `security_opt:`");
}

void Judge::kernel() {
  for (const std::string_view path : kMaskedPaths) covered("MaskedPaths", host_.masked_paths, path);
  for (const std::string_view path : kReadonlyPaths) covered("ReadonlyPaths", host_.readonly_paths, path);
  for (const auto& [name, value] : host_.sysctls) {
    add("Sysctls", fmt::format("has {}={}", escaped(name), escaped(value)), "remove it from `sysctls:`");
  }
  // Podman's word for any of them.
  const bool unsaid = demands_.engine == EngineKind::Podman && host_.runtime == "oci";
  if (!unsaid && std::ranges::find(kRuntimes, host_.runtime) == std::end(kRuntimes)) {
    add("Runtime", fmt::format("is \"{}\", which is not known here", escaped(host_.runtime)),
        fmt::format("remove `runtime: {}`", escaped(host_.runtime)));
  }
}

void Judge::user() {
  none_of("GroupAdd", host_.group_add, "group_add");
  const std::string_view name = std::string_view(container_.user).substr(0, container_.user.find(':'));
  const auto uid = parse_decimal(name, kLastUid);
  if (uid && *uid != 0) return;
  const std::string what =
      name.empty()            ? "is not set, which is root"
      : uid || name == "root" ? "is root"
                              : fmt::format("is \"{}\", and only the image knows who that is", escaped(name));
  add("User", what, "write a number, as in `user: \"1000:1000\"`");
}

}  // namespace

std::vector<std::string> problems(const ContainerState& container, const Demands& demands) {
  return Judge(container, demands).judge();
}

}  // namespace sallyport::engine
