#include "sandbox/placeholder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "os/act_as.h"
#include "sandbox/beneath.h"

namespace sallyport::sandbox {
namespace {

// 2001-02-03 04:05:06 UTC. Whole seconds, since not every file system keeps more.
constexpr time_t kMark = 981173106;
constexpr mode_t kFileMode = 0644;
constexpr mode_t kFolderMode = 0755;
// Against a run that is just taking the same one away.
constexpr int kAttempts = 3;

int open_flags(Placeholder::Kind kind) {
  const int common = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  return kind == Placeholder::Kind::Folder ? common | O_DIRECTORY : common;
}

bool is_marked(int fd, Placeholder::Kind kind) {
  struct stat status{};
  if (::fstat(fd, &status) != 0 || status.st_mtim.tv_sec != kMark) return false;
  // A folder that is not empty is told by rmdir.
  return kind == Placeholder::Kind::Folder ? S_ISDIR(status.st_mode)
                                           : S_ISREG(status.st_mode) && status.st_size == 0;
}

// Root makes nothing by its own rights where somebody else could change what is made, in between.
std::optional<os::Ids> owner_for_root(int folder) {
  struct stat status{};
  if (os::file_uid() != 0 || ::fstat(folder, &status) != 0 || status.st_uid == 0) return std::nullopt;
  return os::Ids{.uid = status.st_uid, .gid = status.st_gid};
}

// Makes it, marked. False when it is there already, or cannot be made.
bool create(int folder, const std::string& name, Placeholder::Kind kind) {
  const os::ActAs as_owner(owner_for_root(folder));
  if (kind == Placeholder::Kind::Folder) {
    if (::mkdirat(folder, name.c_str(), kFolderMode) != 0) return false;
  } else {
    const Fd file(
        ::openat(folder, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kFileMode));
    if (!file) return false;
  }
  const Fd made(::openat(folder, name.c_str(), open_flags(kind)));
  if (!made) return false;
  const timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, {.tv_sec = kMark, .tv_nsec = 0}};
  return ::futimens(made.get(), times) == 0;
}

}  // namespace

std::optional<Placeholder> Placeholder::make(int folder, const std::string& name, Kind kind,
                                             const std::optional<os::Ids>& client) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const bool made = create(folder, name, kind);
    Placeholder placeholder;
    placeholder.opened_ = Fd(::openat(folder, name.c_str(), open_flags(kind)));
    if (!placeholder.opened_ || !is_marked(placeholder.fd(), kind)) return std::nullopt;
    const bool nobodys = ::flock(placeholder.fd(), LOCK_EX | LOCK_NB) == 0;
    if (::flock(placeholder.fd(), LOCK_SH | LOCK_NB) != 0) continue;
    if (id_of(placeholder.fd()) != id_at(folder, name)) continue;
    placeholder.client_ = client;
    placeholder.folder_ = Fd(::openat(folder, ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
    placeholder.name_ = name;
    placeholder.kind_ = kind;
    placeholder.left_behind_ = !made && nobodys;
    return placeholder;
  }
  return std::nullopt;
}

Placeholder::~Placeholder() {
  if (!opened_ || !folder_) return;
  const os::ActAs as_client(client_);
  // Another run's still: that one takes it away. One that was filled meanwhile stays.
  if (::flock(fd(), LOCK_EX | LOCK_NB) != 0 || !is_marked(fd(), kind_)) return;
  if (id_of(fd()) != id_at(folder_.get(), name_)) return;
  ::unlinkat(folder_.get(), name_.c_str(), kind_ == Kind::Folder ? AT_REMOVEDIR : 0);
}

}  // namespace sallyport::sandbox
