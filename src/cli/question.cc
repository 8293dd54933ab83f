#include "cli/question.h"

#include <fmt/core.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>

#include "base/text.h"

namespace sallyport::cli {
namespace {

// A terminal's line has at most 4096 bytes; a longer one is no answer.
constexpr std::size_t kMaxAnswerBytes = 4096;

// Byte by byte: what stands behind the line belongs to whoever reads next.
std::string read_line() {
  std::string line;
  while (line.size() < kMaxAnswerBytes) {
    char byte = 0;
    const ssize_t got = ::read(STDIN_FILENO, &byte, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return "";
    if (byte == '\n') return line;
    line += byte;
  }
  return "";
}

}  // namespace

bool can_ask() {
  const bool terminal = ::isatty(STDIN_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1;
  return terminal && ::tcgetpgrp(STDIN_FILENO) == ::getpgrp();
}

bool ask(const std::string& question) {
  if (::tcflush(STDIN_FILENO, TCIFLUSH) != 0) return false;
  fmt::print(stderr, "{} [y/N] ", question);
  const std::string line = lowered(trimmed(read_line()));
  return line == "y" || line == "yes";
}

}  // namespace sallyport::cli
