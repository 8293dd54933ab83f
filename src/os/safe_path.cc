#include "os/safe_path.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "os/act_as.h"

namespace sallyport::os {

namespace {

constexpr mode_t kRightsOfOthers = S_IRWXG | S_IRWXO;

Fd open_without_magic(int folder, const std::string& path, int flags) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC);
  how.resolve = RESOLVE_NO_MAGICLINKS;
  return Fd(static_cast<int>(::syscall(SYS_openat2, folder, path.c_str(), &how, sizeof how)));
}

Fd open_safely(int folder, const std::string& path, int flags) {
  return open_without_magic(folder, path, flags | O_NOFOLLOW);
}

Status check_folder(int folder, const std::string& path) {
  struct stat facts{};
  if (::fstat(folder, &facts) != 0) return fail_errno(Reason::Internal, "stat " + path);
  if (!S_ISDIR(facts.st_mode)) {
    return fail(Reason::Internal, path + " is not a folder (or is a symbolic link)");
  }
  if (facts.st_uid != file_uid()) {
    return fail(Reason::Internal, path + " belongs to uid " + std::to_string(facts.st_uid) + ", not to " +
                                      std::to_string(file_uid()) + ": chown it, or name another folder");
  }
  if ((facts.st_mode & kRightsOfOthers) != 0) {
    return fail(Reason::Internal, path + " is open to group or others: chmod 700 " + path);
  }
  return {};
}

Status make_parents(const std::string& path) {
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    const std::string parent = path.substr(0, slash);
    if (::mkdir(parent.c_str(), 0700) != 0 && errno != EEXIST) {
      return fail_errno(Reason::Internal, "make " + parent);
    }
  }
  return {};
}

}  // namespace

bool path_exists(const std::string& path) {
  struct stat facts{};
  return ::lstat(path.c_str(), &facts) == 0;
}

Fd open_by_name(const std::string& path, int flags) {
  return open_without_magic(AT_FDCWD, path, flags);
}

Result<Fd> open_private_file(const std::string& path, uid_t owner) {
  return open_private_file_at(AT_FDCWD, path, path, owner);
}

Result<Fd> open_private_file_at(int folder, const std::string& name, const std::string& path, uid_t owner) {
  // O_NONBLOCK: a FIFO must not hold us before it is seen to be one.
  Fd file = open_safely(folder, name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!file && errno == ELOOP) {
    return fail(Reason::Internal, path + " is a symbolic link: name the file itself");
  }
  if (!file) return fail_errno(Reason::Internal, "open " + path);
  struct stat facts{};
  if (::fstat(file.get(), &facts) != 0) return fail_errno(Reason::Internal, "stat " + path);
  if (!S_ISREG(facts.st_mode)) return fail(Reason::Internal, path + " is not a regular file");
  if (facts.st_uid != owner && facts.st_uid != 0) {
    return fail(Reason::Internal, path + " belongs to uid " + std::to_string(facts.st_uid) + ": chown " +
                                      std::to_string(owner) + " " + path);
  }
  if ((facts.st_mode & kRightsOfOthers) != 0) {
    return fail(Reason::Internal, path + " can be used by group or others: chmod 600 " + path);
  }
  return file;
}

Result<std::string> read_whole(int fd, std::size_t max_bytes) {
  std::string content;
  char piece[16 * 1024];
  for (;;) {
    const ssize_t got = ::read(fd, piece, sizeof piece);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno(Reason::Internal, "read");
    if (got == 0) return content;
    const auto count = static_cast<std::size_t>(got);
    if (count > max_bytes - content.size()) {
      return fail(Reason::TooLarge, "the file has more than " + std::to_string(max_bytes) + " bytes");
    }
    content.append(piece, count);
  }
}

Result<Fd> make_private_folder(const std::string& path) {
  if (path.empty() || path[0] != '/') {
    return fail(Reason::Internal, "\"" + path + "\" is not an absolute path");
  }
  if (auto done = make_parents(path); !done) return fail(std::move(done));
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return fail_errno(Reason::Internal, "make " + path);
  }
  return open_private_folder(path);
}

Result<Fd> open_private_folder(const std::string& path) {
  Fd folder = open_safely(AT_FDCWD, path, O_PATH);
  if (!folder) return fail_errno(Reason::Internal, "open " + path);
  if (auto done = check_folder(folder.get(), path); !done) return fail(std::move(done));
  return folder;
}

}  // namespace sallyport::os
