#include "os/event_loop.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <string>

#include "os/unix_socket.h"

namespace sallyport::os {
namespace {

using std::chrono::milliseconds;

TEST(EventLoop, CallsBackWhileADescriptorIsReady) {
  auto pair = socket_pair(SocketKind::Stream);
  ASSERT_TRUE(pair);
  EventLoop loop;
  std::string got;
  loop.watch(pair->second.get(), POLLIN, [&](short) {
    char byte = 0;
    if (::read(pair->second.get(), &byte, 1) == 1) {
      got += byte;
    } else {
      loop.stop();
    }
  });
  ASSERT_EQ(::write(pair->first.get(), "abc", 3), 3);
  pair->first.reset();
  ASSERT_TRUE(loop.run());
  EXPECT_EQ(got, "abc");
}

TEST(EventLoop, CallsNoOneWhoWasUnwatchedInTheSameRound) {
  auto one = socket_pair(SocketKind::Stream);
  auto two = socket_pair(SocketKind::Stream);
  ASSERT_TRUE(one && two);
  ASSERT_EQ(::write(one->first.get(), "x", 1), 1);
  ASSERT_EQ(::write(two->first.get(), "x", 1), 1);
  EventLoop loop;
  int calls = 0;
  const int fds[] = {one->second.get(), two->second.get()};
  for (const int fd : fds) {
    loop.watch(fd, POLLIN, [&](short) {
      ++calls;
      for (const int each : fds) loop.unwatch(each);
      loop.after(milliseconds(0), [&] { loop.stop(); });
    });
  }
  ASSERT_TRUE(loop.run());
  EXPECT_EQ(calls, 1);
}

TEST(EventLoop, CallsNobodyForASuccessorOfTheSameNumber) {
  auto pair = socket_pair(SocketKind::Stream);
  ASSERT_TRUE(pair);
  ASSERT_EQ(::write(pair->first.get(), "x", 1), 1);
  EventLoop loop;
  const int number = pair->second.get();
  loop.watch(number, POLLIN, [](short) { FAIL() << "it was unwatched"; });
  loop.unwatch(number);
  int calls = 0;
  loop.watch(number, POLLIN, [&](short events) {
    ++calls;
    EXPECT_EQ(events, POLLIN);
    loop.watch(number, POLLOUT, [&](short others) {
      EXPECT_EQ(others, POLLOUT);
      loop.stop();
    });
  });
  ASSERT_TRUE(loop.run());
  EXPECT_EQ(calls, 1);
}

TEST(EventLoop, WaitsForWhatEpollDoesNotTake) {
  // As it is when a user's processes have used up fs.epoll.max_user_watches.
  const Fd always_ready(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  auto pair = socket_pair(SocketKind::Stream);
  ASSERT_TRUE(always_ready && pair);
  EventLoop loop;
  bool heard = false;
  loop.watch(pair->second.get(), POLLIN, [&](short) {
    heard = true;
    loop.stop();
  });
  loop.watch(always_ready.get(), POLLIN, [&](short) {
    loop.unwatch(always_ready.get());
    ASSERT_EQ(::write(pair->first.get(), "x", 1), 1);
  });
  ASSERT_TRUE(loop.run());
  EXPECT_TRUE(heard);
}

TEST(EventLoop, RunsTimersInTheirOrderAndPeriods) {
  EventLoop loop;
  std::string seen;
  int ticks = 0;
  const auto stop_when_done = [&] {
    if (seen == "ab" && ticks == 3) loop.stop();
  };
  loop.after(milliseconds(20), [&] {
    seen += 'b';
    stop_when_done();
  });
  loop.after(milliseconds(1), [&] { seen += 'a'; });
  const auto cancelled = loop.after(milliseconds(0), [&] { seen += 'x'; });
  loop.cancel(cancelled);
  EventLoop::TimerId tick{};
  tick = loop.every(milliseconds(1), [&] {
    if (++ticks == 3) loop.cancel(tick);
    stop_when_done();
  });
  ASSERT_TRUE(loop.run());
  EXPECT_EQ(seen, "ab");
  EXPECT_EQ(ticks, 3);
}

TEST(EventLoop, HearsWhatIsThereBeforeATimerGivesItUp) {
  auto one = socket_pair(SocketKind::Stream);
  auto two = socket_pair(SocketKind::Stream);
  ASSERT_TRUE(one && two);
  ASSERT_EQ(::write(one->first.get(), "x", 1), 1);
  EventLoop loop;
  std::string order;
  loop.after(milliseconds(0), [&] { order += "a"; });
  loop.watch(one->second.get(), POLLIN, [&](short) {
    loop.unwatch(one->second.get());
    order += "1";
    loop.after(milliseconds(1), [&] {
      order += "b";
      loop.stop();
    });
    // A turn that takes longer than that.
    ::poll(nullptr, 0, 5);
    EXPECT_EQ(::write(two->first.get(), "x", 1), 1);
  });
  loop.watch(two->second.get(), POLLIN, [&](short) {
    loop.unwatch(two->second.get());
    order += "2";
  });
  ASSERT_TRUE(loop.run());
  EXPECT_EQ(order, "1a2b");
}

TEST(EventLoop, ReportsSignalsAndGivesThemBack) {
  sigset_t before;
  ::sigprocmask(SIG_BLOCK, nullptr, &before);
  {
    EventLoop loop;
    int got = 0;
    ASSERT_TRUE(loop.on_signals({SIGUSR1, SIGCHLD}, [&](int signal) {
      got = signal;
      loop.stop();
    }));
    ::raise(SIGUSR1);
    ASSERT_TRUE(loop.run());
    EXPECT_EQ(got, SIGUSR1);
  }
  sigset_t after;
  ::sigprocmask(SIG_BLOCK, nullptr, &after);
  EXPECT_EQ(::sigismember(&after, SIGUSR1), ::sigismember(&before, SIGUSR1));
}

}  // namespace
}  // namespace sallyport::os
