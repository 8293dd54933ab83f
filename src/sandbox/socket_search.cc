#include "sandbox/socket_search.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/text.h"
#include "sandbox/search_budget.h"

namespace sallyport::sandbox {
namespace {

namespace fs = std::filesystem;

// A socket that is hidden one by one costs a mount; more are a sign of a folder that is no workspace.
constexpr std::size_t kMaxHiddenSockets = 32;

Result<Mount> nothing_at(std::string path) {
  Fd null(::open("/dev/null", O_PATH | O_CLOEXEC));
  struct stat status{};
  if (!null || ::fstat(null.get(), &status) != 0) return fail_errno(Reason::Internal, "open /dev/null");
  Mount mount;
  mount.source = std::move(null);
  mount.path = std::move(path);
  mount.access = Access::ReadOnly;
  mount.device = status.st_dev;
  mount.inode = status.st_ino;
  mount.owner = status.st_uid;
  return mount;
}

}  // namespace

Status hide_sockets(const Mount& mount, WorkspaceGuard& guard) {
  std::error_code error;
  const fs::path top = fmt::format("/proc/self/fd/{}", mount.source.get());
  auto entry = fs::recursive_directory_iterator(top, fs::directory_options::skip_permission_denied, error);
  std::size_t hidden_here = 0;
  SearchBudget budget;
  for (; !error && entry != fs::end(entry); entry.increment(error)) {
    if (!budget.spend_on(entry->path().native())) {
      guard.search = Search::CutShort;
      guard.notices.push_back(escaped(mount.path) + " is too large to be searched for sockets to its end");
      return {};
    }
    std::error_code ignored;
    if (!fs::is_socket(entry->symlink_status(ignored))) continue;
    const std::string path = joined(mount.path, entry->path().lexically_relative(top).string());
    if (hidden_here++ == kMaxHiddenSockets) {
      return fail(Reason::BadRequest,
                  escaped(mount.path) + fmt::format(" holds more than {} Unix sockets (", kMaxHiddenSockets) +
                      escaped(path) + "); it is no folder to give a sandbox");
    }
    auto hidden = nothing_at(path);
    if (!hidden) return fail(std::move(hidden));
    guard.mounts.push_back(std::move(*hidden));
    guard.hidden_sockets.push_back(path);
    guard.notices.push_back(escaped(path) + " is a socket of the host's, and hidden from the sandbox");
  }
  return {};
}

}  // namespace sallyport::sandbox
