#include "session/ca_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/random.h"
#include "base/text.h"

namespace sallyport::session {
namespace {

constexpr mode_t kMode = 0644;

std::unexpected<Error> refused(const std::string& path, std::string_view why) {
  return fail(Reason::Internal, escaped(path) + " " + std::string(why));
}

Status check_replaceable(int folder, const std::string& name, const std::string& path) {
  struct stat there{};
  if (::fstatat(folder, name.c_str(), &there, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return {};
    return fail_errno(Reason::Internal, escaped(path));
  }
  if (S_ISDIR(there.st_mode)) return refused(path, "is a folder: name a file in it");
  if (!S_ISREG(there.st_mode)) return refused(path, "is no regular file: name another one");
  if (there.st_uid != ::geteuid()) return refused(path, "belongs to another user: name another file");
  return {};
}

// What it is told by from now on.
Result<struct stat> fill(const Fd& file, std::string_view bundle, const std::string& path) {
  struct stat made{};
  const bool written =
      ::write(file.get(), bundle.data(), bundle.size()) == static_cast<ssize_t>(bundle.size());
  // The mode is what it says, whatever the umask.
  if (!written || ::fchmod(file.get(), kMode) != 0 || ::fstat(file.get(), &made) != 0) {
    return fail_errno(Reason::Internal, escaped(path));
  }
  return made;
}

}  // namespace

CaFile::CaFile(Fd folder, std::string name, dev_t device, ino_t inode)
    : folder_(std::move(folder)), name_(std::move(name)), device_(device), inode_(inode) {}

CaFile::~CaFile() {
  struct stat there{};
  if (!folder_ || ::fstatat(folder_.get(), name_.c_str(), &there, AT_SYMLINK_NOFOLLOW) != 0) return;
  if (there.st_dev == device_ && there.st_ino == inode_) ::unlinkat(folder_.get(), name_.c_str(), 0);
}

Result<CaFile> CaFile::write(const std::string& path, std::string_view bundle) {
  const std::size_t slash = path.rfind('/');
  const std::string name = path.substr(slash + 1);
  if (name.empty()) return refused(path, "is a folder: name a file in it");
  Fd folder(::open(path.substr(0, slash + 1).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return fail_errno(Reason::Internal, escaped(path.substr(0, slash + 1)));
  if (auto status = check_replaceable(folder.get(), name, path); !status) return fail(std::move(status));

  const std::string unfinished = ".sallyport-ca-" + random_hex(8);
  const Fd file(::openat(folder.get(), unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kMode));
  if (!file) return fail_errno(Reason::Internal, escaped(path));
  auto made = fill(file, bundle, path);
  if (made && ::renameat(folder.get(), unfinished.c_str(), folder.get(), name.c_str()) != 0) {
    made = fail_errno(Reason::Internal, escaped(path));
  }
  if (!made) {
    ::unlinkat(folder.get(), unfinished.c_str(), 0);
    return fail(std::move(made));
  }
  return CaFile(std::move(folder), name, made->st_dev, made->st_ino);
}

}  // namespace sallyport::session
