// The audit log's file, one JSON object a line. The warden is the only process that writes it; several
// wardens (one each `sallyport run`) may share a file, each counting its own lines.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "audit/event.h"
#include "audit/json.h"
#include "base/fd.h"
#include "base/result.h"

namespace sallyport::audit {

class Sink {
 public:
  using Clock = std::function<std::chrono::system_clock::time_point()>;

  // Opens `path` for appending, made with mode 0600 when it is missing, in a folder that is made with mode
  // 0700 when that is missing. What is there already must be a regular file of this user's without any right
  // for others, and no symbolic link: AuditUnavailable otherwise, with the remedy. A line that a crash left
  // unfinished is ended.
  static Result<Sink> open(const std::string& path, Clock clock);
  // On a descriptor that is open for appending.
  Sink(Fd file, Clock clock) : file_(std::move(file)), clock_(std::move(clock)) {}

  // Marks the session as alive, as long as this file is open; then ends, in their own names, the sessions and
  // requests of writers that are gone without having done so (recover.h), as far as the log's last
  // kMaxRecoveredBytes tell. The mark is a lock on one byte far behind the file's end, so that it is gone
  // with the process, however it ends.
  static constexpr std::size_t kMaxRecoveredBytes = 8 * 1024 * 1024;
  Status begin_session(std::string_view session);

  // From now on in every line that append() writes.
  void set_container(std::string container) { container_ = std::move(container); }

  // Writes the event as one line with one write(2). AuditUnavailable when it could not be written whole; then
  // no part of it stays, and its number is used again.
  Status append(std::string_view session, Event event);

  // Of all lines that append() wrote.
  std::uint64_t bytes_written() const { return bytes_written_; }

 private:
  Status end_torn_line();
  Result<std::string> read_end() const;
  Status write_line(const Stamp& stamp, Event event);

  std::string container_;
  Fd file_;
  Clock clock_;
  std::uint64_t bytes_written_ = 0;
  std::uint64_t next_ = 1;
};

}  // namespace sallyport::audit
