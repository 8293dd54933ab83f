#include "config/text_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <utility>

#include "base/fd.h"
#include "os/safe_path.h"

namespace sallyport::config {
namespace {

// Asked of the descriptor: a path that is resolved by itself could meanwhile lead to another file.
std::string path_of(int fd) {
  char path[PATH_MAX];
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t size = ::readlink(link.c_str(), path, sizeof path);
  if (size <= 0 || size == PATH_MAX || path[0] != '/') return "";
  return {path, static_cast<std::size_t>(size)};
}

}  // namespace

std::expected<TextFile, Problem> read_text_file(const std::string& path, const Place& place,
                                                const std::string& what, std::size_t max_bytes) {
  const auto problem = [&](const std::string& message, std::string remedy) {
    return std::unexpected(Problem{place, what + " " + message, std::move(remedy)});
  };
  // Non-blocking: a FIFO in its place must not hold us up.
  const Fd fd = os::open_by_name(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!fd && errno == ELOOP)
    return problem("has no name of its own, or is a circle of links", "name the file itself");
  if (!fd) {
    if (errno == ENOENT) return problem("does not exist", "create it, or name another");
    return problem("cannot be opened: " + errno_text(errno), "make it readable for you");
  }
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0) return problem("cannot be examined: " + errno_text(errno), "");
  if (!S_ISREG(status.st_mode)) return problem("is not a regular file", "name a file");
  if ((status.st_mode & S_IWOTH) != 0) return problem("may be written by everybody", "chmod o-w it");
  if (std::cmp_greater(status.st_size, max_bytes)) {
    return problem("is larger than " + std::to_string(max_bytes >> 20U) + " MiB", "");
  }
  Result<std::string> text = os::read_whole(fd.get(), max_bytes);
  if (!text) return problem("cannot be read: " + text.error().detail, "");
  TextFile file{path_of(fd.get()), *std::move(text)};
  if (::fstat(fd.get(), &status) != 0 || status.st_nlink == 0 || file.path.empty()) {
    return problem("was replaced while it was read", "try again");
  }
  return file;
}

}  // namespace sallyport::config
