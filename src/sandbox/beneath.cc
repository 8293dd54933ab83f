#include "sandbox/beneath.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "base/text.h"
#include "os/safe_path.h"

namespace sallyport::sandbox {
namespace {

Fd open_raw(int folder, const std::string& name, int flags) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  const char* text = name.empty() ? "." : name.c_str();
  return Fd(static_cast<int>(::syscall(SYS_openat2, folder, text, &how, sizeof how)));
}

std::optional<mode_t> mode_of(int fd) {
  struct stat status{};
  if (::fstat(fd, &status) != 0) return std::nullopt;
  return status.st_mode;
}

}  // namespace

Result<std::optional<Fd>> open_beneath(int folder, const std::string& path, const std::string& name,
                                       int flags) {
  Fd fd = open_raw(folder, name, flags);
  if (fd) return std::optional<Fd>(std::move(fd));
  if (errno == ENOENT || errno == ENOTDIR) return std::optional<Fd>();
  const std::string whole = joined(path, name);
  if (errno == ELOOP) {
    return fail(Reason::BadRequest,
                escaped(whole) + " is, or is reached through, a symbolic link, so that it cannot be " +
                    "protected from the sandbox; work in the real repository, or mount it :ro");
  }
  return fail_errno(Reason::BadRequest, "open " + escaped(whole));
}

std::optional<FileId> id_at(int folder, const std::string& name) {
  struct stat status{};
  if (::fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
  return FileId{status.st_dev, status.st_ino};
}

std::optional<FileId> id_of(int fd) {
  struct stat status{};
  if (::fstat(fd, &status) != 0) return std::nullopt;
  return FileId{status.st_dev, status.st_ino};
}

bool is_folder(int fd) {
  const auto mode = mode_of(fd);
  return mode && S_ISDIR(*mode);
}

bool is_regular(int fd) {
  const auto mode = mode_of(fd);
  return mode && S_ISREG(*mode);
}

std::optional<std::string> read_beneath(int folder, const std::string& name, std::size_t max_bytes) {
  // Without waiting: a fifo may have been put there.
  const Fd file = open_raw(folder, name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!file || !is_regular(file.get())) return std::nullopt;
  auto text = os::read_whole(file.get(), max_bytes);
  if (!text) return std::nullopt;
  return std::move(*text);
}

std::optional<std::vector<std::string>> names_in(int folder, std::size_t max) {
  std::vector<std::string> names;
  Fd fd = open_raw(folder, "", O_RDONLY | O_DIRECTORY);
  if (!fd) return std::nullopt;
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(fd.get()), ::closedir);
  if (!stream) return std::nullopt;
  (void)fd.release();  // the stream's now
  while (const dirent* entry = ::readdir(stream.get())) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (names.size() == max) return std::nullopt;
    names.emplace_back(name);
  }
  std::ranges::sort(names);
  return names;
}

bool looks_like_git_folder(int folder) {
  return id_at(folder, "HEAD") && id_at(folder, "objects") && id_at(folder, "refs");
}

std::string joined(const std::string& folder, const std::string& name) {
  if (folder.empty() || name.empty()) return folder + name;
  return folder + "/" + name;
}

bool is_or_lies_in(std::string_view path, std::string_view folder) {
  if (folder == "/") return true;
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

}  // namespace sallyport::sandbox
