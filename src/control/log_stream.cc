#include "control/log_stream.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cerrno>
#include <utility>

#include "audit/recover.h"

namespace sallyport::control {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{64} * 1024;

std::uint64_t size_of(int file) {
  struct stat facts{};
  return ::fstat(file, &facts) == 0 ? static_cast<std::uint64_t>(facts.st_size) : 0;
}

std::uint64_t search_begin(int file) {
  const std::uint64_t size = size_of(file);
  return size > kMaxLogSearchBytes ? size - kMaxLogSearchBytes : 0;
}

}  // namespace

Result<std::optional<LineReader::Line>> LineReader::next(std::size_t& budget) {
  for (;;) {
    const std::size_t end = buffer_.find('\n', searched_);
    if (end != std::string::npos) {
      const Line line{offset_ + taken_, std::string_view(buffer_).substr(taken_, end - taken_)};
      taken_ = searched_ = end + 1;
      if (std::exchange(is_torn_, false)) continue;
      return line;
    }
    buffer_.erase(0, taken_);
    offset_ += std::exchange(taken_, 0);
    if (buffer_.size() > kMaxLogLineBytes) {
      offset_ += buffer_.size();
      buffer_.clear();
      is_torn_ = true;
    }
    searched_ = buffer_.size();
    if (budget == 0) return std::nullopt;
    const std::size_t before = buffer_.size();
    const std::size_t wanted = std::min(kPieceBytes, budget);
    buffer_.resize(before + wanted);
    const ssize_t got = ::pread(file_, buffer_.data() + before, wanted, static_cast<off_t>(offset_ + before));
    buffer_.resize(before + (got > 0 ? static_cast<std::size_t>(got) : 0));
    if (got < 0 && errno != EINTR) return fail_errno(Reason::Internal, "read the audit log");
    if (got == 0) return std::nullopt;
    budget -= got > 0 ? static_cast<std::size_t>(got) : 0;
  }
}

LogStream::LogStream(os::EventLoop& loop, Fd file, Wish wish, std::function<bool()> goes_on, Answer answer)
    : loop_(loop),
      file_(std::move(file)),
      wish_(std::move(wish)),
      goes_on_(std::move(goes_on)),
      answer_(std::move(answer)),
      reader_(file_.get(), search_begin(file_.get())),
      searched_until_(size_of(file_.get())) {}

void LogStream::start(os::EventLoop& loop, Fd file, Wish wish, std::function<bool()> goes_on, Answer answer) {
  const std::shared_ptr<LogStream> stream(
      new LogStream(loop, std::move(file), std::move(wish), std::move(goes_on), std::move(answer)));
  stream->answer_.begin();
  stream->turn();
}

// Kept by the timer alone: when nobody listens any more, this is the end of it.
void LogStream::look_again(std::chrono::milliseconds after) {
  loop_.after(after, [self = shared_from_this()] { self->turn(); });
}

void LogStream::turn() {
  if (answer_.is_gone()) return;
  // Asked first: what it writes before it is over is then read.
  const bool goes_on = wish_.follow && goes_on_();
  const auto all = sending_ ? send_lines() : find_begin();
  if (!all) return answer_.fail(to_api_error(all.error()));
  if (!*all) return look_again(kLogTurnInterval);
  if (ended_ || !goes_on) return answer_.end();
  look_again(kLogLookInterval);
}

// True: there is nothing more to be done now.
Result<bool> LogStream::find_begin() {
  std::size_t budget = kMaxLogTurnBytes;
  for (;;) {
    auto line = reader_.next(budget);
    if (!line) return fail(std::move(line));
    const bool is_past = *line && (*line)->offset >= searched_until_;
    if (!*line && budget == 0) return false;
    if (!*line || is_past) break;
    if (audit::session_of((*line)->text) != wish_.session) continue;
    last_.push_back((*line)->offset);
    if (last_.size() > wish_.lines) last_.pop_front();
  }
  reader_ = LineReader(file_.get(), last_.empty() ? searched_until_ : last_.front());
  last_ = {};
  sending_ = true;
  return send_lines();
}

Result<bool> LogStream::send_lines() {
  std::size_t budget = kMaxLogTurnBytes;
  while (!ended_) {
    if (answer_.queued_bytes() > kMaxLogAheadBytes) return false;
    auto line = reader_.next(budget);
    if (!line) return fail(std::move(line));
    if (!*line) return budget > 0;
    if (audit::session_of((*line)->text) != wish_.session) continue;
    if (!answer_.line({{"line", boost::json::string((*line)->text)}})) return true;
    ended_ = audit::ends_session((*line)->text);
  }
  return true;
}

}  // namespace sallyport::control
