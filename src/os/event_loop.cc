#include "os/event_loop.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>
#include <vector>

namespace sallyport::os {

EventLoop::~EventLoop() {
  if (signal_fd_) ::pthread_sigmask(SIG_SETMASK, &old_mask_, nullptr);
}

void EventLoop::watch(int fd, short events, OnEvent callback) {
  if (watches_.size() >= kMaxWatches) throw std::length_error("event loop: too many descriptors");
  watches_[fd] = Watch{events, std::move(callback), next_generation_++};
}

void EventLoop::unwatch(int fd) {
  watches_.erase(fd);
}

EventLoop::TimerId EventLoop::add_timer(std::chrono::milliseconds delay, std::chrono::milliseconds period,
                                        OnTimer callback) {
  const TimerId id{next_timer_++};
  timers_[id] = Timer{Clock::now() + delay, period, std::move(callback)};
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
  timers_.erase(timer);
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

int EventLoop::poll_timeout() const {
  if (timers_.empty()) return -1;
  const auto soonest = std::ranges::min_element(
      timers_, [](const auto& a, const auto& b) { return a.second.due < b.second.due; });
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(soonest->second.due - Clock::now());
  constexpr std::chrono::milliseconds kLongest{60'000};  // looks again: poll(2) counts in an int
  return static_cast<int>(std::clamp(left, std::chrono::milliseconds(0), kLongest).count());
}

void EventLoop::run_due_timers() {
  const auto now = Clock::now();
  std::vector<TimerId> due;
  for (const auto& [id, timer] : timers_) {
    if (timer.due <= now) due.push_back(id);
  }
  std::ranges::stable_sort(due, {}, [this](TimerId id) { return timers_.at(id).due; });
  for (const TimerId id : due) {
    const auto found = timers_.find(id);
    if (found == timers_.end()) continue;  // cancelled by another one's callback
    const OnTimer callback = found->second.callback;
    if (found->second.period.count() == 0) {
      timers_.erase(found);
    } else {
      found->second.due = now + found->second.period;
    }
    callback();
  }
}

Status EventLoop::run() {
  running_ = true;
  std::vector<pollfd> entries;
  std::vector<std::uint64_t> generations;
  while (running_) {
    entries.clear();
    generations.clear();
    for (const auto& [fd, watch] : watches_) {
      entries.push_back({fd, watch.events, 0});
      generations.push_back(watch.generation);
    }
    const int ready = ::poll(entries.data(), entries.size(), poll_timeout());
    if (ready < 0 && errno != EINTR) return fail_errno(Reason::Internal, "poll");
    run_due_timers();
    if (ready <= 0) continue;
    for (std::size_t i = 0; i < entries.size() && running_; ++i) {
      if (entries[i].revents == 0) continue;
      const auto found = watches_.find(entries[i].fd);
      if (found == watches_.end() || found->second.generation != generations[i]) continue;
      const OnEvent callback = found->second.callback;  // it may unwatch itself
      callback(entries[i].revents);
    }
  }
  return {};
}

}  // namespace sallyport::os
