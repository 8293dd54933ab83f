#include "sandbox/mounts.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <ranges>

#include "base/text.h"
#include "sandbox/beneath.h"
#include "sandbox/normal_path.h"

namespace sallyport::sandbox {
namespace {

struct Listed {
  const char* path;
  const char* why;
};

// Below every home.
constexpr Listed kInHome[] = {
    {".ssh", "holds ssh keys"},
    {".aws", "holds AWS credentials"},
    {".config/gcloud", "holds Google Cloud credentials"},
    {".config/google-cloud", "holds Google Cloud credentials"},
    {".config/gh", "holds GitHub tokens"},
    {".config/azure", "holds Azure credentials"},
    {".azure", "holds Azure credentials"},
    {".netrc", "holds passwords"},
    {".git-credentials", "holds git passwords"},
    {".config/git/credentials", "holds git passwords"},
    {".kube", "holds cluster credentials"},
    {".gnupg", "holds private keys"},
    {".docker", "holds registry credentials"},
    {".npmrc", "holds registry tokens"},
    {".pypirc", "holds registry tokens"},
    {".cargo/credentials", "holds registry tokens"},
    {".cargo/credentials.toml", "holds registry tokens"},
    {".terraform.d", "holds Terraform credentials"},
    {".claude", "holds an agent's credentials"},
    {".codex", "holds an agent's credentials"},
    {".gemini", "holds an agent's credentials"},
    {".config/sallyport", "is Sallyport's own folder"},
    {".local/state/sallyport", "is Sallyport's own folder"},
};

constexpr Listed kOfTheHost[] = {
    {"/etc", "is the host's configuration"},
    {"/proc", "is the host's kernel interface"},
    {"/sys", "is the host's kernel interface"},
    {"/dev", "holds the host's devices"},
    {"/run/sallyport", "is Sallyport's own folder"},
    {"/run/docker.sock", "controls the host through Docker"},
    {"/var/run/docker.sock", "controls the host through Docker"},
    {"/run/docker", "controls the host through Docker"},
    {"/run/containerd", "controls the host through containerd"},
    {"/run/podman", "controls the host through podman"},
    {"/run/crio", "controls the host through CRI-O"},
    {"/run/dbus", "holds the system's D-Bus socket"},
    {"/run/systemd", "holds the system manager's sockets"},
    {"/run/user", "holds the logins' sockets (D-Bus, agents, key rings)"},
    {"/tmp/.X11-unix", "lets a program type into the desktop"},
    {"/var/lib/docker", "is Docker's own storage"},
    {"/var/lib/containerd", "is containerd's own storage"},
};

// As realpath(3); what does not exist (yet) is kept behind the last part that does.
std::string resolved_as_far_as_possible(const std::string& path) {
  std::error_code error;
  std::string text = std::filesystem::weakly_canonical(path, error).string();
  return error ? normal_path(path) : normal_path(text);
}

class DangerList {
 public:
  void add(const std::string& path, std::string why) {
    if (path.empty() || path.front() != '/') return;
    const std::string plain = normal_path(path);
    const std::string target = resolved_as_far_as_possible(plain);
    if (plain == "/" || target == "/") return;
    if (target != plain) paths_.push_back({target, why});
    paths_.push_back({plain, std::move(why)});
  }
  std::vector<DangerousPath> take() { return std::move(paths_); }

 private:
  std::vector<DangerousPath> paths_;
};

// The path in "unix:path=/run/user/1000/bus,guid=..." or "unix:///run/docker.sock"; "" for anything else.
std::string socket_path(std::string_view address) {
  for (const std::string_view prefix : {"unix:path=", "unix://"}) {
    if (!address.starts_with(prefix)) continue;
    address.remove_prefix(prefix.size());
    return std::string(address.substr(0, address.find_first_of(",;")));
  }
  return {};
}

std::unexpected<Error> refuse(std::string detail) {
  return fail(Reason::BadRequest, std::move(detail));
}

// As the kernel allows in one path.
constexpr int kMaxLinks = 40;

constexpr char kRemedy[] =
    "; give the sandbox a folder that holds only what it works on (cd there, or --mount PATH)";

// Opens `path` without following a link anywhere: it was resolved before, so a link can only be one that was
// put there since.
Result<Fd> open_resolved(const std::string& path) {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  const long fd = ::syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof how);
  if (fd < 0) return fail_errno(Reason::BadRequest, "open " + escaped(path));
  return Fd(static_cast<int>(fd));
}

}  // namespace

Result<MountRequest> parse_mount(std::string_view text) {
  MountRequest request;
  constexpr std::string_view kReadOnly = ":ro";
  if (text.ends_with(kReadOnly)) {
    request.access = Access::ReadOnly;
    text.remove_suffix(kReadOnly.size());
  }
  if (text.empty()) return refuse("a mount needs a path: --mount PATH or --mount PATH:ro");
  if (text.find('\0') != std::string_view::npos) return refuse("a mount's path holds a NUL byte");
  request.path = std::string(text);
  return request;
}

Dangers dangerous_paths(const DangerInput& input) {
  DangerList list;
  std::vector<std::string> homes = input.own_homes;
  homes.insert(homes.end(), input.other_homes.begin(), input.other_homes.end());
  for (const std::string& home : homes) {
    if (home.empty() || normal_path(home) == "/") continue;
    for (const Listed& entry : kInHome) list.add(home + "/" + entry.path, entry.why);
  }
  for (const std::string& home : input.other_homes) list.add(home, "is another user's home");
  for (const Listed& entry : kOfTheHost) list.add(entry.path, entry.why);
  for (const std::string& folder : input.sallyport_folders) list.add(folder, "is Sallyport's own folder");
  list.add(input.ssh_agent, "is the ssh agent's socket");
  list.add(socket_path(input.dbus_address), "is a D-Bus socket");
  list.add(socket_path(input.docker_host), "controls the host through Docker");

  Dangers dangers{.paths = list.take(), .own_homes = {}};
  for (const std::string& home : input.own_homes) {
    if (home.empty() || home.front() != '/') continue;
    for (const std::string& form : {normal_path(home), resolved_as_far_as_possible(home)}) {
      if (form != "/") dangers.own_homes.push_back(form);
    }
  }
  return dangers;
}

std::vector<std::string> other_homes(std::string_view passwd, const std::vector<std::string>& own) {
  constexpr std::uint64_t kFirstPerson = 1000;
  constexpr std::uint64_t kLastPerson = 59999;
  std::vector<std::string> homes;
  for (const std::string_view line : split(passwd, '\n')) {
    const auto fields = split(line, ':');
    if (fields.size() != 7) continue;
    const auto uid = parse_decimal(fields[2], UINT32_MAX);
    if (!uid || (*uid != 0 && (*uid < kFirstPerson || *uid > kLastPerson))) continue;
    const std::string home = normal_path(fields[5]);
    const bool ours = std::ranges::any_of(
        own, [&](const std::string& mine) { return is_or_lies_in(normal_path(mine), home); });
    if (!ours && home.starts_with('/')) homes.push_back(home);
  }
  return homes;
}

Status judge_source(const std::string& resolved, const Dangers& dangers) {
  if (resolved == "/") {
    return refuse("/ is the whole host and never goes into a sandbox" + std::string(kRemedy));
  }
  for (const std::string& home : dangers.own_homes) {
    if (resolved == home) {
      return refuse(escaped(resolved) + " is the home folder itself, with all its credentials" + kRemedy);
    }
    if (is_or_lies_in(home, resolved)) {
      return refuse(escaped(resolved) + " contains the home folder " + escaped(home) + kRemedy);
    }
  }
  for (const DangerousPath& danger : dangers.paths) {
    if (!is_or_lies_in(resolved, danger.path)) continue;
    const std::string which =
        resolved == danger.path ? std::string(" ") : " lies in " + escaped(danger.path) + ", which ";
    return refuse(escaped(resolved) + which + danger.why + kRemedy);
  }
  for (const DangerousPath& danger : dangers.paths) {
    if (!is_or_lies_in(danger.path, resolved)) continue;
    return refuse(escaped(resolved) + " contains " + escaped(danger.path) + ", which " + danger.why +
                  kRemedy);
  }
  return {};
}

Result<std::string> resolve(const std::string& given, const std::vector<std::string>& untrusted) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path start = fs::absolute(given, error);
  if (error) return refuse("mount " + escaped(given) + ": " + error.message());
  std::vector<std::string> ahead;  // the next part is the last
  const auto push = [&](const fs::path& path) {
    const std::vector<fs::path> parts(path.begin(), path.end());
    for (const fs::path& part : parts | std::views::reverse) ahead.push_back(part.string());
  };
  push(start);
  fs::path at = "/";
  for (int links = 0; !ahead.empty();) {
    const std::string part = std::move(ahead.back());
    ahead.pop_back();
    if (part.empty() || part == "/" || part == ".") continue;
    if (part == "..") {
      at = at.parent_path();
      continue;
    }
    const fs::path next = at / part;
    const auto status = fs::symlink_status(next, error);
    if (!fs::exists(status)) {
      return refuse("mount " + escaped(given) + ": " + errno_text(error ? error.value() : ENOENT));
    }
    if (!fs::is_symlink(status)) {
      at = next;
      continue;
    }
    const auto holds = [&](const std::string& folder) { return is_or_lies_in(at.string(), folder); };
    if (std::ranges::any_of(untrusted, holds)) {
      return refuse(
          "mount " + escaped(given) + ": " + escaped(next.string()) +
          " is a symbolic link in a folder that a sandbox can write to, which may have made it; name "
          "what it leads to, if that is what you want");
    }
    if (++links > kMaxLinks) return refuse("mount " + escaped(given) + ": " + errno_text(ELOOP));
    const fs::path target = fs::read_symlink(next, error);
    if (error) return refuse("mount " + escaped(given) + ": " + error.message());
    if (target.is_absolute()) at = "/";
    push(target);
  }
  return at.string();
}

Result<Mount> open_mount(const MountRequest& request, const Dangers& dangers,
                         const std::vector<std::string>& untrusted) {
  auto real = resolve(request.path, untrusted);
  if (!real) return fail(std::move(real));

  Mount mount;
  mount.path = std::move(*real);
  mount.access = request.access;
  if (const auto judged = judge_source(mount.path, dangers); !judged) return fail(Result<void>(judged));

  auto source = open_resolved(mount.path);
  if (!source) return fail(std::move(source));
  struct stat status{};
  if (::fstat(source->get(), &status) != 0) {
    return fail_errno(Reason::BadRequest, "stat " + escaped(mount.path));
  }
  if (!S_ISDIR(status.st_mode) && !S_ISREG(status.st_mode)) {
    return refuse(escaped(mount.path) + " is neither a folder nor a regular file, and is not mounted");
  }
  // An O_PATH descriptor is had of what may not be opened, too.
  const int needed = S_ISDIR(status.st_mode) ? X_OK : R_OK;
  if (::faccessat(source->get(), "", needed, AT_EACCESS | AT_EMPTY_PATH) != 0) {
    return fail_errno(Reason::BadRequest,
                      (S_ISDIR(status.st_mode) ? "enter " : "read ") + escaped(mount.path));
  }
  mount.source = std::move(*source);
  mount.device = status.st_dev;
  mount.inode = status.st_ino;
  mount.owner = status.st_uid;

  std::error_code error;
  const std::string given = normal_path(std::filesystem::absolute(request.path, error).string());
  if (!error && given != mount.path) mount.alias = given;
  return mount;
}

}  // namespace sallyport::sandbox
