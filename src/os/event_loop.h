// A small loop over epoll(7) for processes that mostly wait: the warden and the command line. One thread, no
// Asio. Callbacks may watch, unwatch and stop; they must not block. What a turn costs does not depend on how
// many descriptors and timers there are.
#pragma once

#include <signal.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace sallyport::os {

class EventLoop {
 public:
  using Clock = std::chrono::steady_clock;
  using OnEvent = std::function<void(short revents)>;
  using OnTimer = std::function<void()>;
  using OnSignal = std::function<void(int signal)>;
  enum class TimerId : std::uint64_t {};

  // Descriptors watched at once, as a bound on what a caller's mistake may cost.
  static constexpr std::size_t kMaxWatches = 65536;

  // Throws std::system_error when the kernel gives no epoll instance.
  EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;
  ~EventLoop();

  // Calls back while `events` (POLLIN, POLLOUT) hold, and on POLLHUP and POLLERR. The descriptor stays the
  // caller's, who unwatches it before closing it. Watching it again replaces events and callback.
  void watch(int fd, short events, OnEvent callback);
  void unwatch(int fd);

  TimerId after(std::chrono::milliseconds delay, OnTimer callback);
  TimerId every(std::chrono::milliseconds period, OnTimer callback);
  void cancel(TimerId timer);

  // Blocks these signals for the process and reports them here. Once; before other threads start.
  Status on_signals(std::initializer_list<int> signals, OnSignal callback);

  // Until stop().
  Status run();
  void stop() { running_ = false; }

 private:
  // Descriptors whose events are taken from the kernel at once; the others' turn is the next.
  static constexpr int kMaxEventsPerTurn = 256;

  struct Watch {
    short events;
    OnEvent callback;
    std::uint32_t generation;  // tells a descriptor from its successor of the same number within one round
  };
  struct Ready {
    int fd;
    std::uint32_t generation;
    short events;
  };
  struct Timer {
    Clock::time_point due;
    std::chrono::milliseconds period;  // zero: once
    OnTimer callback;
  };

  TimerId add_timer(std::chrono::milliseconds delay, std::chrono::milliseconds period, OnTimer callback);
  int timeout() const;
  Result<std::vector<Ready>> wait();
  Result<std::vector<Ready>> wait_for_polled();
  Status take_events(int timeout, std::vector<Ready>& ready);
  void run_due_timers(Clock::time_point now);
  void read_signals(const OnSignal& callback);

  Fd epoll_;
  std::map<int, Watch> watches_;
  // Those that epoll did not take: fs.epoll.max_user_watches is one number for all processes of a user, a
  // sandbox's among them.
  std::set<int> polled_;
  std::map<TimerId, Timer> timers_;
  std::set<std::pair<Clock::time_point, TimerId>> due_;
  std::uint32_t next_generation_ = 1;
  std::uint64_t next_timer_ = 1;
  bool running_ = false;
  Fd signal_fd_;
  sigset_t old_mask_{};
};

}  // namespace sallyport::os
