#include "cli/terminal_bridge.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace sallyport::cli {
namespace {

// The user's terminal is blocking and ours alone; what it does not take at once it takes after a wait.
void write_all(int fd, const char* bytes, std::size_t size) {
  while (size > 0) {
    const ssize_t written = ::write(fd, bytes, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) {
      pollfd wait{fd, POLLOUT, 0};
      ::poll(&wait, 1, -1);
      continue;
    }
    if (written <= 0) return;
    bytes += written;
    size -= static_cast<std::size_t>(written);
  }
}

}  // namespace

TerminalBridge::~TerminalBridge() {
  suspend();
}

Status TerminalBridge::open() {
  constexpr std::array kStandard{STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
  const auto* terminal = std::ranges::find_if(kStandard, [](int fd) { return ::isatty(fd) == 1; });
  if (terminal == kStandard.end()) return {};
  auto pty = sandbox::open_pty(*terminal);
  if (!pty) return fail(std::move(pty));
  pty_ = std::move(*pty);
  if (::isatty(STDIN_FILENO) == 1) terminal_in_ = STDIN_FILENO;
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO, STDIN_FILENO}) {
    if (terminal_out_ < 0 && ::isatty(fd) == 1) terminal_out_ = fd;
  }
  return {};
}

std::array<int, 3> TerminalBridge::sandbox_descriptors() const {
  std::array<int, 3> result{STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
  for (int& fd : result) {
    if (pty_ && ::isatty(fd) == 1) fd = pty_->slave.get();
  }
  return result;
}

void TerminalBridge::close_sandbox_side() {
  if (pty_) pty_->slave.reset();
}

Status TerminalBridge::start() {
  if (!pty_) return {};
  loop_.watch(pty_->master.get(), POLLIN, [this](short) { copy_output(); });
  watching_ = true;
  return take_terminal();
}

// Only the foreground's processes may read the terminal or change its modes; the others are stopped for
// trying.
Status TerminalBridge::take_terminal() {
  if (terminal_in_ < 0 || !sandbox::in_foreground(terminal_in_)) return {};
  if (raw_mode_) {
    raw_mode_->resume();
  } else {
    auto raw_mode = sandbox::RawMode::enter(terminal_in_);
    if (!raw_mode) return fail(std::move(raw_mode));
    raw_mode_.emplace(std::move(*raw_mode));
  }
  loop_.watch(terminal_in_, POLLIN, [this](short) { copy_input(); });
  return {};
}

void TerminalBridge::copy_input() {
  std::array<char, 4096> buffer;
  const ssize_t got = ::read(terminal_in_, buffer.data(), buffer.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got <= 0) return loop_.unwatch(terminal_in_);
  write_all(pty_->master.get(), buffer.data(), static_cast<std::size_t>(got));
}

void TerminalBridge::copy_output() {
  std::array<char, 16 * 1024> buffer;
  const ssize_t got = ::read(pty_->master.get(), buffer.data(), buffer.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  // EIO: nobody inside holds the terminal any more.
  if (got <= 0) return loop_.unwatch(pty_->master.get());
  write_all(terminal_out_, buffer.data(), static_cast<std::size_t>(got));
}

void TerminalBridge::window_changed() {
  if (pty_) (void)sandbox::copy_window_size(terminal_out_, pty_->master.get());
}

void TerminalBridge::suspend() {
  if (terminal_in_ >= 0 && watching_) loop_.unwatch(terminal_in_);
  if (raw_mode_) raw_mode_->suspend();
}

void TerminalBridge::resume() {
  if (!watching_) return;
  (void)take_terminal();
  window_changed();
}

void TerminalBridge::finish() {
  if (!watching_) return;
  if (terminal_in_ >= 0) loop_.unwatch(terminal_in_);
  loop_.unwatch(pty_->master.get());
  watching_ = false;
  std::array<char, 16 * 1024> buffer;
  for (ssize_t got = 0; (got = ::read(pty_->master.get(), buffer.data(), buffer.size())) > 0;) {
    write_all(terminal_out_, buffer.data(), static_cast<std::size_t>(got));
  }
  raw_mode_.reset();
}

}  // namespace sallyport::cli
