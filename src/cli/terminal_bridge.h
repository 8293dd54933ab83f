// Carries bytes between the user's terminal and the sandbox's own pty, so that the sandbox never holds the
// terminal itself. Only those of the three standard descriptors that are terminals go through the pty; the
// others are passed on.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "os/event_loop.h"
#include "sandbox/terminal.h"

namespace sallyport::cli {

class TerminalBridge {
 public:
  explicit TerminalBridge(os::EventLoop& loop) : loop_(loop) {}
  ~TerminalBridge();
  TerminalBridge(const TerminalBridge&) = delete;
  TerminalBridge& operator=(const TerminalBridge&) = delete;

  // Makes the pty when one of the descriptors is a terminal.
  Status open();
  bool on_stdin() const { return terminal_in_ >= 0; }
  // What the sandbox gets as descriptors 0, 1 and 2.
  std::array<int, 3> sandbox_descriptors() const;
  // Our copy of the sandbox's side; once the sandbox has its own.
  void close_sandbox_side();

  // Raw mode, and bytes both ways. In the background nothing is read, and the terminal's modes are left
  // alone, until resume() finds us in the foreground.
  Status start();
  void window_changed();
  // Around a stop of ourselves; resume() also when we were brought to the foreground.
  void suspend();
  void resume();
  // What the sandbox still had to say, and the terminal as it was.
  void finish();

 private:
  Status take_terminal();
  void copy_input();
  void copy_output();

  os::EventLoop& loop_;
  std::optional<sandbox::Pty> pty_;
  std::optional<sandbox::RawMode> raw_mode_;
  int terminal_in_ = -1;  // the user's, -1: none
  int terminal_out_ = -1;
  bool watching_ = false;
};

}  // namespace sallyport::cli
