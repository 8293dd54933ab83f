#include "sandbox/terminal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "os/unix_socket.h"

namespace sallyport::sandbox {

bool in_foreground(int terminal) {
  const pid_t foreground = ::tcgetpgrp(terminal);
  return foreground < 0 || foreground == ::getpgrp();  // not our controlling terminal: nobody will stop us
}

Result<Pty> open_pty(int like) {
  Pty pty;
  pty.master = Fd(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!pty.master) return fail_errno(Reason::Internal, "open a terminal");
  if (::unlockpt(pty.master.get()) != 0) return fail_errno(Reason::Internal, "unlock a terminal");
  // By the master, not by a path: /dev/pts may be another one here.
  pty.slave = Fd(::ioctl(pty.master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!pty.slave) return fail_errno(Reason::Internal, "open a terminal");

  termios modes{};
  if (::tcgetattr(like, &modes) != 0 || ::tcsetattr(pty.slave.get(), TCSANOW, &modes) != 0) {
    return fail_errno(Reason::Internal, "copy the terminal's modes");
  }
  if (const auto copied = copy_window_size(like, pty.master.get()); !copied) {
    return fail(Result<void>(copied));
  }
  if (const auto set = os::set_nonblocking(pty.master.get()); !set) return fail(Result<void>(set));
  return pty;
}

Status copy_window_size(int from, int to) {
  winsize size{};
  if (::ioctl(from, TIOCGWINSZ, &size) != 0 || ::ioctl(to, TIOCSWINSZ, &size) != 0) {
    return fail_errno(Reason::Internal, "copy the terminal's size");
  }
  return {};
}

Result<RawMode> RawMode::enter(int terminal) {
  termios saved{};
  if (::tcgetattr(terminal, &saved) != 0) return fail_errno(Reason::Internal, "read the terminal's modes");
  termios raw = saved;
  ::cfmakeraw(&raw);
  RawMode mode(terminal, saved, raw);
  mode.resume();
  return mode;
}

RawMode::~RawMode() {
  suspend();
}

// TCSADRAIN: output that was written before keeps its form.
void RawMode::suspend() {
  set(saved_);
}

void RawMode::resume() {
  set(raw_);
}

void RawMode::set(const termios& modes) const {
  if (terminal_ >= 0 && in_foreground(terminal_)) ::tcsetattr(terminal_, TCSADRAIN, &modes);
}

}  // namespace sallyport::sandbox
