// One session's lines of the audit log, to a caller of the control API: the last ones, and then what comes.
// Read from the file bit by bit, so that neither a large log nor a slow reader costs memory, or holds up the
// daemon. It is looked at again and again, and not watched: watches are few, and credentials need them.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"
#include "control/api_call.h"
#include "os/event_loop.h"

namespace sallyport::control {

inline constexpr std::size_t kMaxLogLines = 10'000;
// Of the file's end, in which the last lines are looked for.
inline constexpr std::size_t kMaxLogSearchBytes = std::size_t{256} * 1024 * 1024;
// A longer one is none of ours, and is left out.
inline constexpr std::size_t kMaxLogLineBytes = std::size_t{512} * 1024;
// Read in one turn of the loop.
inline constexpr std::size_t kMaxLogTurnBytes = std::size_t{1024} * 1024;
// Of a reader that does not keep up: no more is read until it has taken some.
inline constexpr std::size_t kMaxLogAheadBytes = std::size_t{256} * 1024;
inline constexpr std::chrono::milliseconds kLogLookInterval{250};
inline constexpr std::chrono::milliseconds kLogTurnInterval{5};

// The whole lines of a file from an offset on, as far as there are any.
class LineReader {
 public:
  LineReader(int file, std::uint64_t offset) : file_(file), offset_(offset) {}

  struct Line {
    std::uint64_t offset;
    std::string_view text;  // until the next call; without its line feed
  };
  // nullopt: no other whole line is there yet, or `budget` bytes were read, which counts down to 0.
  Result<std::optional<Line>> next(std::size_t& budget);

 private:
  int file_;
  std::uint64_t offset_;  // of buffer_
  std::string buffer_;
  std::size_t taken_ = 0;     // of buffer_
  std::size_t searched_ = 0;  // without a line feed in it
  bool is_torn_ = false;      // the line that began before buffer_ is too long
};

class LogStream : public std::enable_shared_from_this<LogStream> {
 public:
  struct Wish {
    std::string session;  // its id
    std::size_t lines = kMaxLogLines;
    bool follow = false;
  };

  // Answers with lines until the session's last one, or without `follow` until the file's end. It lives as
  // long as the caller listens. `goes_on`: whether the session may write still.
  static void start(os::EventLoop& loop, Fd file, Wish wish, std::function<bool()> goes_on, Answer answer);

 private:
  LogStream(os::EventLoop& loop, Fd file, Wish wish, std::function<bool()> goes_on, Answer answer);

  void turn();
  Result<bool> find_begin();
  Result<bool> send_lines();
  void look_again(std::chrono::milliseconds after);

  os::EventLoop& loop_;
  Fd file_;
  Wish wish_;
  std::function<bool()> goes_on_;
  Answer answer_;
  LineReader reader_;
  std::uint64_t searched_until_ = 0;  // the file's size at the begin
  std::deque<std::uint64_t> last_;    // where the session's last lines begin; until they are sent
  bool sending_ = false;
  bool ended_ = false;  // its last line was sent
};

}  // namespace sallyport::control
