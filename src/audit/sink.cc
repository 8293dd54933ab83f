#include "audit/sink.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "audit/json.h"
#include "os/safe_path.h"

namespace sallyport::audit {
namespace {

// Held around each write, so that taking back a torn line cannot take another warden's line with it.
class FileLock {
 public:
  static Result<FileLock> take(int file) {
    while (::flock(file, LOCK_EX) != 0) {
      if (errno != EINTR) return fail_errno(Reason::AuditUnavailable, "lock the audit log");
    }
    return FileLock(file);
  }
  FileLock(FileLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock() {
    if (file_ >= 0) ::flock(file_, LOCK_UN);
  }

 private:
  explicit FileLock(int file) : file_(file) {}
  int file_;
};

ssize_t write_once(int file, std::string_view bytes) {
  for (;;) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written >= 0 || errno != EINTR) return written;
  }
}

struct PathParts {
  std::string folder;
  std::string name;
};

PathParts split_path(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {".", path};
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

Result<Fd> open_folder(const std::string& path) {
  Fd folder(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (folder) return folder;
  if (errno != ENOENT) return fail_errno(Reason::AuditUnavailable, "open " + path);
  auto made = os::make_private_folder(path);
  if (!made) return fail(Reason::AuditUnavailable, made.error().detail);
  return made;
}

Status check_file(int file, const std::string& path) {
  struct stat about{};
  if (::fstat(file, &about) != 0) return fail_errno(Reason::AuditUnavailable, "fstat " + path);
  if (!S_ISREG(about.st_mode)) return fail(Reason::AuditUnavailable, path + " is not a regular file");
  if (about.st_uid != ::geteuid()) {
    return fail(Reason::AuditUnavailable, path + " belongs to another user; name another file");
  }
  if ((about.st_mode & 077U) != 0) {
    return fail(Reason::AuditUnavailable, path + " is open to others: chmod 600 " + path);
  }
  return {};
}

}  // namespace

Result<Sink> Sink::open(const std::string& path, Clock clock) {
  const PathParts parts = split_path(path);
  if (parts.name.empty()) return fail(Reason::AuditUnavailable, "the audit log's path names no file");
  auto folder = open_folder(parts.folder);
  if (!folder) return fail(std::move(folder));
  // O_NONBLOCK: a FIFO or device that lies there must not make us wait. It changes nothing for regular files.
  Fd file(::openat(folder->get(), parts.name.c_str(),
                   O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600));
  if (!file && errno == ELOOP) {
    return fail(Reason::AuditUnavailable, path + " is a symbolic link; name the file itself");
  }
  if (!file) return fail_errno(Reason::AuditUnavailable, "open " + path);
  if (auto checked = check_file(file.get(), path); !checked) return fail(std::move(checked));
  Sink sink(std::move(file), std::move(clock));
  if (auto ended = sink.end_torn_line(); !ended) return fail(std::move(ended));
  return sink;
}

Status Sink::end_torn_line() {
  auto lock = FileLock::take(file_.get());
  if (!lock) return fail(std::move(lock));
  const off_t end = ::lseek(file_.get(), 0, SEEK_END);
  if (end < 0) return fail_errno(Reason::AuditUnavailable, "size of the audit log");
  if (end == 0) return {};
  char last = '\0';
  if (::pread(file_.get(), &last, 1, end - 1) != 1) {
    return fail_errno(Reason::AuditUnavailable, "read the audit log's end");
  }
  if (last == '\n' || write_once(file_.get(), "\n") == 1) return {};
  return fail_errno(Reason::AuditUnavailable, "write the audit log");
}

Status Sink::append(std::string_view session, Event event) {
  const std::string line = json_line({clock_(), next_, std::string(session)}, std::move(event));
  auto lock = FileLock::take(file_.get());
  if (!lock) return fail(std::move(lock));
  const off_t start = ::lseek(file_.get(), 0, SEEK_END);
  if (start < 0) return fail_errno(Reason::AuditUnavailable, "size of the audit log");
  const ssize_t written = write_once(file_.get(), line);
  if (written == static_cast<ssize_t>(line.size())) {
    ++next_;
    return {};
  }
  auto error = written < 0 ? fail_errno(Reason::AuditUnavailable, "write the audit log")
                           : fail(Reason::AuditUnavailable, "write the audit log: no room for a whole line");
  if (written > 0 && ::ftruncate(file_.get(), start) != 0) {
    error.error().detail += "; part of a line could not be taken back: " + errno_text(errno);
  }
  return error;
}

}  // namespace sallyport::audit
