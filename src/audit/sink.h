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

  // Writes the event as one line with one write(2). AuditUnavailable when it could not be written whole; then
  // no part of it stays, and its number is used again.
  Status append(std::string_view session, Event event);

 private:
  Status end_torn_line();

  Fd file_;
  Clock clock_;
  std::uint64_t next_ = 1;
};

}  // namespace sallyport::audit
