// The command line's side of a sandbox's terminal: a pty of our own, so that the sandbox never holds the
// caller's (TIOCSTI would let it type there), and the caller's terminal in raw mode meanwhile.
#pragma once

#include <termios.h>

#include <utility>

#include "base/fd.h"
#include "base/result.h"

namespace sallyport::sandbox {

struct Pty {
  Fd master;  // non-blocking, close-on-exec
  Fd slave;   // for the sandbox's stdin, stdout and stderr
};

// A new pair, with size and modes of the terminal `like` (so before RawMode changes them). Nobody's
// controlling terminal.
Result<Pty> open_pty(int like);

// The size of the terminal `from` for `to`; to be called at SIGWINCH. The kernel tells the sandbox.
Status copy_window_size(int from, int to);

// Whether we may read the terminal and change its modes; in the background the kernel stops who tries.
bool in_foreground(int terminal);

// Raw mode for as long as this lives. To be entered once the workload runs: before, Ctrl-C is meant for us.
// In the background the modes are somebody else's, and are left alone.
class RawMode {
 public:
  static Result<RawMode> enter(int terminal);
  RawMode(RawMode&& other) noexcept
      : terminal_(std::exchange(other.terminal_, -1)), saved_(other.saved_), raw_(other.raw_) {}
  RawMode& operator=(RawMode&&) = delete;
  ~RawMode();

  // Around a stop of the caller: suspend() gives the terminal back, resume() takes it again.
  void suspend();
  void resume();

 private:
  RawMode(int terminal, const termios& saved, const termios& raw)
      : terminal_(terminal), saved_(saved), raw_(raw) {}
  void set(const termios& modes) const;
  int terminal_;
  termios saved_;
  termios raw_;
};

}  // namespace sallyport::sandbox
