#include "sandbox/workspace_guard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <optional>

#include "base/text.h"

namespace sallyport::sandbox {
namespace {

namespace fs = std::filesystem;

constexpr const char* kProtected[] = {"config", "config.worktree", "hooks"};
// A socket that is hidden one by one costs a mount; more are a sign of a folder that is no workspace.
constexpr std::size_t kMaxHiddenSockets = 32;

Result<Mount> mount_of(Fd source, std::string path, Access access) {
  struct stat status{};
  if (::fstat(source.get(), &status) != 0) return fail_errno(Reason::BadRequest, "stat " + escaped(path));
  Mount mount;
  mount.source = std::move(source);
  mount.path = std::move(path);
  mount.access = access;
  mount.device = status.st_dev;
  mount.inode = status.st_ino;
  mount.owner = status.st_uid;
  return mount;
}

// What is at `name` below the mount, reached through no link; nullopt when it is not there.
Result<std::optional<Mount>> open_below(const Mount& mount, const std::string& name, Access access) {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  const std::string path = mount.path + "/" + name;
  Fd fd(static_cast<int>(::syscall(SYS_openat2, mount.source.get(), name.c_str(), &how, sizeof how)));
  if (!fd && (errno == ENOENT || errno == ENOTDIR)) return std::optional<Mount>();
  if (!fd && errno == ELOOP) {
    return fail(Reason::BadRequest,
                escaped(path) + " is, or is reached through, a symbolic link, so that it cannot be " +
                    "protected from the sandbox; work in the real repository, or mount it :ro");
  }
  if (!fd) return fail_errno(Reason::BadRequest, "open " + escaped(path));
  auto opened = mount_of(std::move(fd), path, access);
  if (!opened) return fail(std::move(opened));
  return std::optional<Mount>(std::move(*opened));
}

bool is_folder(const Mount& mount) {
  struct stat status{};
  return ::fstat(mount.source.get(), &status) == 0 && S_ISDIR(status.st_mode);
}

// The git folders of submodules, at any depth (modules/a, modules/a/modules/b, modules/dir/c): those that
// hold a HEAD.
std::vector<std::string> submodule_folders(const Mount& mount) {
  std::vector<std::string> names;
  std::error_code error;
  const fs::path top = fmt::format("/proc/self/fd/{}/.git/modules", mount.source.get());
  auto entry = fs::recursive_directory_iterator(top, fs::directory_options::skip_permission_denied, error);
  for (std::size_t seen = 0; !error && entry != fs::end(entry) && seen < kMaxSearched;
       entry.increment(error)) {
    ++seen;
    const std::string name = entry->path().filename().string();
    if (name == "objects" || name == "refs" || name == "logs") entry.disable_recursion_pending();
    if (name != "HEAD") continue;
    names.push_back(".git/modules/" + entry->path().parent_path().lexically_relative(top).string());
  }
  return names;
}

Status protect_git_folder(const Mount& mount, const std::string& folder, std::vector<Mount>& mounts) {
  for (const char* name : kProtected) {
    auto opened = open_below(mount, folder + "/" + name, Access::ReadOnly);
    if (!opened) return fail(std::move(opened));
    if (*opened) mounts.push_back(std::move(**opened));
  }
  return {};
}

Status protect_git(const Mount& mount, std::vector<Mount>& mounts) {
  auto git = open_below(mount, ".git", Access::ReadWrite);
  if (!git) return fail(std::move(git));
  if (!*git) return {};
  if (!is_folder(**git)) {
    (*git)->access = Access::ReadOnly;  // a pointer to the real one elsewhere
    mounts.push_back(std::move(**git));
    return {};
  }
  mounts.push_back(std::move(**git));
  std::vector<std::string> folders = submodule_folders(mount);
  folders.insert(folders.begin(), ".git");
  for (const std::string& folder : folders) {
    if (const auto done = protect_git_folder(mount, folder, mounts); !done) return done;
  }
  return {};
}

Status hide_sockets(const Mount& mount, WorkspaceGuard& guard) {
  std::error_code error;
  const fs::path top = fmt::format("/proc/self/fd/{}", mount.source.get());
  auto entry = fs::recursive_directory_iterator(top, fs::directory_options::skip_permission_denied, error);
  for (std::size_t seen = 0; !error && entry != fs::end(entry); entry.increment(error)) {
    if (++seen > kMaxSearched) {
      guard.search = Search::CutShort;
      return {};
    }
    std::error_code ignored;
    if (!fs::is_socket(entry->symlink_status(ignored))) continue;
    const std::string path = mount.path + "/" + entry->path().lexically_relative(top).string();
    if (guard.hidden_sockets.size() == kMaxHiddenSockets) {
      return fail(Reason::BadRequest,
                  escaped(mount.path) + fmt::format(" holds more than {} Unix sockets (", kMaxHiddenSockets) +
                      escaped(path) + "); it is no folder to give a sandbox");
    }
    Fd null(::open("/dev/null", O_PATH | O_CLOEXEC));
    if (!null) return fail_errno(Reason::Internal, "open /dev/null");
    auto hidden = mount_of(std::move(null), path, Access::ReadOnly);
    if (!hidden) return fail(std::move(hidden));
    guard.mounts.push_back(std::move(*hidden));
    guard.hidden_sockets.push_back(path);
  }
  return {};
}

}  // namespace

Result<WorkspaceGuard> guard_workspace(const Mount& mount) {
  WorkspaceGuard guard;
  if (!is_folder(mount)) return guard;
  if (mount.access == Access::ReadWrite) {
    if (const auto done = protect_git(mount, guard.mounts); !done) return fail(Result<void>(done));
  }
  if (const auto done = hide_sockets(mount, guard); !done) return fail(Result<void>(done));
  return guard;
}

}  // namespace sallyport::sandbox
