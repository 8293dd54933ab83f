#include "control/health.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>

#include "base/fd.h"
#include "base/result.h"
#include "base/text.h"

namespace sallyport::control {
namespace {

NotReady cannot_be_written(const std::string& path, int error) {
  return {"the audit log " + escaped(path) + " cannot be written: " + errno_text(error) +
              ", so nothing is let through",
          "Make it writable for the daemon's user again: `ls -l` and `findmnt -T` tell what is in its way."};
}

}  // namespace

std::optional<NotReady> why_no_audit(const std::string& path) {
  const std::string folder = path.substr(0, path.rfind('/'));
  // Not through a FIFO, which would wait for a reader.
  const Fd log(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!log && errno != ENOENT) return cannot_be_written(path, errno);
  if (!log && ::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) != 0) {
    return cannot_be_written(path, errno);
  }
  struct statvfs disk{};
  if (::statvfs(folder.c_str(), &disk) != 0) return cannot_be_written(path, errno);
  const std::uint64_t blocks = ::geteuid() == 0 ? disk.f_bfree : disk.f_bavail;
  return why_no_room(path, blocks * disk.f_frsize);
}

std::optional<NotReady> why_no_room(const std::string& path, std::uint64_t free_bytes) {
  if (free_bytes >= kMinFreeAuditBytes) return std::nullopt;
  return NotReady{"the disk of the audit log " + escaped(path) + " is full, so nothing is let through",
                  "Make room: `df` shows the disk, and old lines of the log may be moved elsewhere."};
}

}  // namespace sallyport::control
