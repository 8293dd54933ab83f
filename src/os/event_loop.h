// A small loop over poll(2) for processes that mostly wait: the warden and the command line. One thread, no
// Asio. Callbacks may watch, unwatch and stop; they must not block.
#pragma once

#include <signal.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>

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

  EventLoop() = default;
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
  struct Watch {
    short events;
    OnEvent callback;
    std::uint64_t generation;  // tells a descriptor from its successor of the same number within one round
  };
  struct Timer {
    Clock::time_point due;
    std::chrono::milliseconds period;  // zero: once
    OnTimer callback;
  };

  TimerId add_timer(std::chrono::milliseconds delay, std::chrono::milliseconds period, OnTimer callback);
  int poll_timeout() const;
  void run_due_timers();
  void read_signals(const OnSignal& callback);

  std::map<int, Watch> watches_;
  std::map<TimerId, Timer> timers_;
  std::uint64_t next_generation_ = 1;
  std::uint64_t next_timer_ = 1;
  bool running_ = false;
  Fd signal_fd_;
  sigset_t old_mask_{};
};

}  // namespace sallyport::os
