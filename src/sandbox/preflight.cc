#include "sandbox/preflight.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <sstream>

#include "base/text.h"
#include "os/packet_listener.h"
#include "os/safe_path.h"
#include "sandbox/profile.h"
#include "sandbox/stdio_check.h"

namespace sallyport::sandbox {
namespace {

namespace fs = std::filesystem;

// By their well-known paths, whatever they are; other sockets are found by searching the private folders.
constexpr const char* kHostSockets[] = {
    "/run/docker.sock",
    "/var/run/docker.sock",
    "/run/containerd/containerd.sock",
    "/run/podman/podman.sock",
    "/run/crio/crio.sock",
    "/run/dbus/system_bus_socket",
    "/var/run/dbus/system_bus_socket",
    "/run/systemd/private",
    "/tmp/.X11-unix",
};
constexpr const char* kLoginSockets[] = {"bus", "docker.sock", "podman/podman.sock", "gnupg", "keyring"};
// Entries of a private folder that are looked at; they hold next to nothing before the workload runs.
constexpr int kMaxSearched = 10'000;

std::string_view variable(const Workload& workload, std::string_view name) {
  for (const std::string_view line : workload.environment) {
    if (line.starts_with(name) && line.size() > name.size() && line[name.size()] == '=') {
      return line.substr(name.size() + 1);
    }
  }
  return {};
}

// What init itself came by is there for good, and of no use once nobody listens any more.
bool is_left_over(const std::string& path) {
  return path == kControlPath && !os::connect_packets(path);
}

// The first socket below `folder`; what lies in a mount is the user's, and is not searched.
std::string find_socket(const std::string& folder, const std::vector<ExpectedMount>& mounts) {
  std::error_code error;
  auto entry = fs::recursive_directory_iterator(folder, fs::directory_options::skip_permission_denied, error);
  for (int searched = 0; !error && entry != fs::end(entry) && searched < kMaxSearched;
       entry.increment(error)) {
    ++searched;
    const std::string path = entry->path().string();
    std::error_code ignored;
    if (fs::is_socket(entry->symlink_status(ignored)) && !is_left_over(path)) return path;
    if (std::ranges::find(mounts, path, &ExpectedMount::path) != mounts.end()) {
      entry.disable_recursion_pending();
    }
  }
  return {};
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

Leak check_host_sockets(const std::vector<ExpectedMount>& mounts, const Workload& workload) {
  std::vector<std::string> paths(std::begin(kHostSockets), std::end(kHostSockets));
  for (const char* name : kLoginSockets) paths.push_back(fmt::format("/run/user/{}/{}", ::getuid(), name));
  for (const std::string& path : paths) {
    if (os::path_exists(path)) return leak(Check::HostSockets, path + " is in the sandbox");
  }
  for (const std::string& line : workload.environment) {
    if (line.starts_with("SSH_AUTH_SOCK=") || line.starts_with("DBUS_")) {
      return leak(Check::HostSockets, "the environment names a socket: " + line.substr(0, line.find('=')));
    }
  }
  for (const std::string& folder : {std::string("/run"), std::string("/tmp"), std::string("/var/tmp"),
                                    std::string(variable(workload, "HOME"))}) {
    if (folder.empty() || folder == "/") continue;
    const std::string found = find_socket(folder, mounts);
    if (!found.empty()) return leak(Check::HostSockets, escaped(found) + " is a socket of the host");
  }
  return std::nullopt;
}

Leak check_mounts(const std::vector<ExpectedMount>& mounts) {
  for (const ExpectedMount& mount : mounts) {
    struct stat status{};
    if (::lstat(mount.path.c_str(), &status) != 0) {
      return leak(Check::Mounts, escaped(mount.path) + " is not there");
    }
    if (status.st_dev != mount.device || status.st_ino != mount.inode) {
      return leak(Check::Mounts, escaped(mount.path) + " is not what was checked: it was replaced meanwhile");
    }
  }
  return std::nullopt;
}

// Also stdin may be no way out: a folder outside is one by openat(fd, "..").
Leak check_descriptors(int keep) {
  std::error_code error;
  std::vector<int> open;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd", error)) {
    const auto number = parse_decimal(entry.path().filename().string(), INT32_MAX);
    if (number) open.push_back(static_cast<int>(*number));
  }
  if (error) return leak(Check::Descriptors, "/proc/self/fd cannot be read");
  for (const int fd : open) {
    struct stat status{};
    if (::fstat(fd, &status) != 0) continue;  // the one that listed the folder
    if (fd > 2 && fd != keep) return leak(Check::Descriptors, fmt::format("descriptor {} came along", fd));
    const auto why = fd == keep ? std::nullopt : why_way_out(fd);
    if (why) return leak(Check::Descriptors, fmt::format("descriptor {} {}", fd, *why));
  }
  return std::nullopt;
}

Leak check_canary(const std::string& canary, const Workload& workload) {
  if (canary.empty()) return leak(Check::Canary, "no canary was given");
  const auto holds = [&](const std::string& text) { return text.contains(canary); };
  if (std::ranges::any_of(workload.environment, holds)) {
    return leak(Check::Canary, "the warden's environment came along to the workload");
  }
  if (std::ranges::any_of(workload.argv, holds)) {
    return leak(Check::Canary, "the warden's environment came along in the arguments");
  }
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    if (!parse_decimal(entry.path().filename().string())) continue;
    for (const char* name : {"/environ", "/cmdline"}) {
      const std::string path = entry.path().string() + name;
      if (holds(read_file(path))) return leak(Check::Canary, "the warden's environment stands in " + path);
    }
  }
  if (error) return leak(Check::Canary, "/proc cannot be read");
  return std::nullopt;
}

Leak run_phase1(const Phase1& phase, const Workload& workload, int keep) {
  const std::function<Leak()> checks[] = {
      [&] { return check_descriptors(keep); },
      [] { return check_privileges(); },
      [&] { return check_uid_map(phase.users); },
      [] { return check_socket_families(); },
      [] { return check_system_calls(); },
      [] { return check_proc_sys(); },
      [] { return check_interfaces(); },
      [&] { return check_unreachable(phase.unreachable, phase.decoys); },
      [&] { return check_abstract_socket(phase.decoys.abstract_name); },
      [&] { return check_host_sockets(phase.mounts, workload); },
      [&] { return check_mounts(phase.mounts); },
      [&] { return check_canary(phase.canary, workload); },
  };
  for (const auto& check : checks) {
    if (auto found = check()) return found;
  }
  return std::nullopt;
}

Leak run_phase2(const Phase2& phase) {
  // Again, since the namespace was worked on in between.
  if (auto found = check_interfaces()) return found;
  return check_door(phase);
}

}  // namespace sallyport::sandbox
