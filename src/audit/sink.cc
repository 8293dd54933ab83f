#include "audit/sink.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "audit/json.h"
#include "audit/recover.h"
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

// The byte that stands for a session: its number is the first digits of the session's random id, so that two
// sessions meet as seldom as their ids do.
struct flock mark_of(std::string_view session) {
  constexpr std::size_t kDigits = 15;
  constexpr std::uint64_t kFarBehindTheEnd = std::uint64_t{1} << 62U;
  std::uint64_t number = 0;
  for (const char digit : session.substr(0, kDigits)) {
    number = number << 4U | (static_cast<unsigned char>(digit <= '9' ? digit : digit + 9) & 0xFU);
  }
  struct flock mark{};
  mark.l_type = F_WRLCK;
  mark.l_whence = SEEK_SET;
  mark.l_start = static_cast<off_t>(kFarBehindTheEnd | number);
  mark.l_len = 1;
  return mark;
}

bool is_alive(int file, std::string_view session) {
  struct flock mark = mark_of(session);
  return ::fcntl(file, F_OFD_GETLK, &mark) != 0 || mark.l_type != F_UNLCK;
}

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

Result<std::string> Sink::read_end() const {
  const off_t end = ::lseek(file_.get(), 0, SEEK_END);
  if (end < 0) return fail_errno(Reason::AuditUnavailable, "size of the audit log");
  const off_t start = std::max<off_t>(0, end - static_cast<off_t>(kMaxRecoveredBytes));
  std::string bytes(static_cast<std::size_t>(end - start), '\0');
  std::size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t got = ::pread(file_.get(), bytes.data() + filled, bytes.size() - filled,
                                start + static_cast<off_t>(filled));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return fail_errno(Reason::AuditUnavailable, "read the audit log's end");
    filled += static_cast<std::size_t>(got);
  }
  // The first piece of a log that is longer may be half a line, which is none.
  return bytes;
}

Status Sink::begin_session(std::string_view session) {
  struct flock mark = mark_of(session);
  if (::fcntl(file_.get(), F_OFD_SETLK, &mark) != 0) {
    return fail_errno(Reason::AuditUnavailable, "mark the session in the audit log");
  }
  auto lock = FileLock::take(file_.get());
  if (!lock) return fail(std::move(lock));
  const auto lines = read_end();
  if (!lines) return fail(Reason::AuditUnavailable, lines.error().detail);
  for (const Unfinished& left : unfinished_sessions(*lines)) {
    if (left.session == session || is_alive(file_.get(), left.session)) continue;
    std::uint64_t sequence = left.last_sequence;
    Event event;
    event.reason = Reason::Interrupted;
    event.detail = "written at the next start";
    event.kind = Kind::End;
    for (const std::string& request : left.open_requests) {
      event.request = request;
      if (auto done = write_line({clock_(), ++sequence, left.session, ""}, event); !done) return done;
    }
    event.kind = Kind::SessionEnd;
    if (auto done = write_line({clock_(), ++sequence, left.session, ""}, event); !done) return done;
  }
  return {};
}

Status Sink::append(std::string_view session, Event event) {
  auto lock = FileLock::take(file_.get());
  if (!lock) return fail(std::move(lock));
  auto written = write_line({clock_(), next_, std::string(session), container_}, std::move(event));
  if (written) ++next_;
  return written;
}

// Under the lock.
Status Sink::write_line(const Stamp& stamp, Event event) {
  const std::string line = json_line(stamp, std::move(event));
  const off_t start = ::lseek(file_.get(), 0, SEEK_END);
  if (start < 0) return fail_errno(Reason::AuditUnavailable, "size of the audit log");
  const ssize_t written = write_once(file_.get(), line);
  if (written == static_cast<ssize_t>(line.size())) {
    bytes_written_ += line.size();
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
