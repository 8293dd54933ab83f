#include "sandbox/terminal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "sandbox/trial_test.h"

namespace sallyport::sandbox {
namespace {

bool echoes(int terminal) {
  termios modes{};
  EXPECT_EQ(::tcgetattr(terminal, &modes), 0);
  return (modes.c_lflag & ECHO) != 0;
}

TEST(Terminal, OpensAPairOfTheSameSize) {
  const Fd like = open_pty_like_80x24();
  const auto pty = open_pty(like.get());
  ASSERT_TRUE(pty.has_value());
  winsize size{};
  ASSERT_EQ(::ioctl(pty->slave.get(), TIOCGWINSZ, &size), 0);
  EXPECT_EQ(size.ws_row, 24);
  EXPECT_EQ(size.ws_col, 80);
  EXPECT_NE(::fcntl(pty->master.get(), F_GETFL) & O_NONBLOCK, 0);
}

TEST(Terminal, IsRawOnlyWhileWanted) {
  const Fd like = open_pty_like_80x24();
  const auto pty = open_pty(like.get());
  ASSERT_TRUE(pty.has_value());
  const int terminal = pty->slave.get();
  ASSERT_TRUE(echoes(terminal));
  {
    auto raw = RawMode::enter(terminal);
    ASSERT_TRUE(raw.has_value());
    EXPECT_FALSE(echoes(terminal));
    raw->suspend();
    EXPECT_TRUE(echoes(terminal));
    raw->resume();
    EXPECT_FALSE(echoes(terminal));
  }
  EXPECT_TRUE(echoes(terminal));
}

TEST(Terminal, IsNeededForAPair) {
  const Fd file(::open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_FALSE(open_pty(file.get()).has_value());
  EXPECT_FALSE(RawMode::enter(file.get()).has_value());
}

}  // namespace
}  // namespace sallyport::sandbox
