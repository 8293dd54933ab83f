#include "os/event_loop.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <stdexcept>
#include <system_error>

namespace sallyport::os {

EventLoop::EventLoop() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_) throw std::system_error(errno, std::generic_category(), "epoll_create1");
}

EventLoop::~EventLoop() {
  if (signal_fd_) ::pthread_sigmask(SIG_SETMASK, &old_mask_, nullptr);
}

// The flags of poll(2) and epoll(7) have the same values.
static_assert(POLLIN == EPOLLIN && POLLOUT == EPOLLOUT && POLLHUP == EPOLLHUP && POLLERR == EPOLLERR);

void EventLoop::watch(int fd, short events, OnEvent callback) {
  if (watches_.size() >= kMaxWatches) throw std::length_error("event loop: too many descriptors");
  const std::uint32_t generation = next_generation_++;
  watches_[fd] = Watch{events, std::move(callback), generation};
  epoll_event event{};
  event.events = static_cast<std::uint32_t>(events);
  event.data.u64 = std::uint64_t{generation} << 32U | static_cast<std::uint32_t>(fd);
  const bool taken = ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) == 0 ||
                     ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
  if (taken) {
    polled_.erase(fd);
  } else {
    polled_.insert(fd);
  }
}

void EventLoop::unwatch(int fd) {
  if (watches_.erase(fd) == 0) return;
  if (polled_.erase(fd) == 0) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

EventLoop::TimerId EventLoop::add_timer(std::chrono::milliseconds delay, std::chrono::milliseconds period,
                                        OnTimer callback) {
  const TimerId id{next_timer_++};
  const Timer& timer = timers_[id] = Timer{Clock::now() + delay, period, std::move(callback)};
  due_.emplace(timer.due, id);
  return id;
}

EventLoop::TimerId EventLoop::after(std::chrono::milliseconds delay, OnTimer callback) {
  return add_timer(delay, std::chrono::milliseconds(0), std::move(callback));
}

EventLoop::TimerId EventLoop::every(std::chrono::milliseconds period, OnTimer callback) {
  const auto at_least = std::max(period, std::chrono::milliseconds(1));
  return add_timer(at_least, at_least, std::move(callback));
}

void EventLoop::cancel(TimerId timer) {
  const auto found = timers_.find(timer);
  if (found == timers_.end()) return;
  due_.erase({found->second.due, timer});
  timers_.erase(found);
}

Status EventLoop::on_signals(std::initializer_list<int> signals, OnSignal callback) {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : signals) ::sigaddset(&set, signal);
  Fd fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) return fail_errno(Reason::Internal, "signalfd");
  ::pthread_sigmask(SIG_BLOCK, &set, &old_mask_);
  signal_fd_ = std::move(fd);
  watch(signal_fd_.get(), POLLIN, [this, callback = std::move(callback)](short) { read_signals(callback); });
  return {};
}

void EventLoop::read_signals(const OnSignal& callback) {
  signalfd_siginfo info;
  while (::read(signal_fd_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    callback(static_cast<int>(info.ssi_signo));
  }
}

int EventLoop::timeout() const {
  if (due_.empty()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(due_.begin()->first - Clock::now());
  constexpr std::chrono::milliseconds kLongest{60'000};  // looks again: the kernel counts in an int
  return static_cast<int>(std::clamp(left, std::chrono::milliseconds(0), kLongest).count());
}

void EventLoop::run_due_timers(Clock::time_point now) {
  std::vector<TimerId> due;
  for (const auto& [when, id] : due_) {
    if (when > now) break;
    due.push_back(id);
  }
  for (const TimerId id : due) {
    const auto found = timers_.find(id);
    if (found == timers_.end()) continue;  // cancelled by another one's callback
    const OnTimer callback = found->second.callback;
    due_.erase({found->second.due, id});
    if (found->second.period.count() == 0) {
      timers_.erase(found);
    } else {
      found->second.due = now + found->second.period;
      due_.emplace(found->second.due, id);
    }
    callback();
  }
}

Status EventLoop::take_events(int timeout, std::vector<Ready>& ready) {
  std::array<epoll_event, kMaxEventsPerTurn> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), kMaxEventsPerTurn, timeout);
  if (count < 0 && errno != EINTR) return fail_errno(Reason::Internal, "epoll_wait");
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    ready.push_back({.fd = static_cast<int>(event.data.u64 & UINT32_MAX),
                     .generation = static_cast<std::uint32_t>(event.data.u64 >> 32U),
                     .events = static_cast<short>(event.events)});
  }
  return {};
}

Result<std::vector<EventLoop::Ready>> EventLoop::wait_for_polled() {
  std::vector<Ready> ready;
  std::vector<pollfd> entries{{epoll_.get(), POLLIN, 0}};
  for (const int fd : polled_) entries.push_back({fd, watches_.at(fd).events, 0});
  if (::poll(entries.data(), entries.size(), timeout()) < 0 && errno != EINTR) {
    return fail_errno(Reason::Internal, "poll");
  }
  for (const pollfd& entry : entries) {
    if (entry.revents == 0 || entry.fd == epoll_.get()) continue;
    ready.push_back({entry.fd, watches_.at(entry.fd).generation, entry.revents});
  }
  if (auto status = take_events(0, ready); !status) return fail(std::move(status));
  return ready;
}

Result<std::vector<EventLoop::Ready>> EventLoop::wait() {
  if (!polled_.empty()) return wait_for_polled();
  std::vector<Ready> ready;
  if (auto status = take_events(timeout(), ready); !status) return fail(std::move(status));
  return ready;
}

Status EventLoop::run() {
  running_ = true;
  while (running_) {
    auto ready = wait();
    if (!ready) return fail(std::move(ready));
    // What is there already goes before the timers that would have given it up, and so does what came while
    // a turn took long.
    const auto now = Clock::now();
    for (const Ready& each : *ready) {
      if (!running_) break;
      const auto found = watches_.find(each.fd);
      if (found == watches_.end() || found->second.generation != each.generation) continue;
      const OnEvent callback = found->second.callback;  // it may unwatch itself
      callback(each.events);
    }
    if (running_) run_due_timers(now);
  }
  return {};
}

}  // namespace sallyport::os
