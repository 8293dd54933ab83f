#include "os/file_watcher.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace sallyport::os {

FileWatcher::Group::Group(FileWatcher& watcher, OnChanges on_changes)
    : watcher_(watcher), on_changes_(std::move(on_changes)), key_(watcher.next_key_++) {
  watcher_.groups_.emplace(key_, this);
}

FileWatcher::Group::~Group() {
  watcher_.groups_.erase(key_);
  for (const int id : ids_) {
    const auto watch = watcher_.watches_.find(id);
    watch->second.erase(key_);
    if (!watch->second.empty()) continue;
    watcher_.watches_.erase(watch);
    // Fails when the file is gone, and the word of that not read yet.
    (void)::inotify_rm_watch(watcher_.inotify_.get(), id);
  }
}

// The kernel has one watch for a file in an instance, with one mask. That one grows, and shrinks no more
// while somebody watches: its path may lead elsewhere by then.
Result<int> FileWatcher::Group::add(const std::string& path, std::uint32_t mask) {
  if (auto status = watcher_.open(); !status) return fail(std::move(status));
  const int id = ::inotify_add_watch(watcher_.inotify_.get(), path.c_str(), mask | IN_MASK_ADD);
  if (id < 0) {
    const std::string_view hint = errno == ENOSPC ? " (fs.inotify.max_user_watches is reached)" : "";
    return fail_errno(Reason::Internal, fmt::format("watching {}{}", path, hint));
  }
  watcher_.watches_[id][key_] |= mask & IN_ALL_EVENTS;
  ids_.insert(id);
  return id;
}

FileWatcher::~FileWatcher() {
  if (inotify_) loop_.unwatch(inotify_.get());
  if (overflow_timer_) loop_.cancel(*overflow_timer_);
}

Status FileWatcher::open() {
  if (inotify_) return {};
  Fd inotify(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!inotify) {
    const std::string_view hint = errno == EMFILE ? " (fs.inotify.max_user_instances may be reached)" : "";
    return fail_errno(Reason::Internal, fmt::format("inotify{}", hint));
  }
  inotify_ = std::move(inotify);
  buffer_.resize(kMaxReadBytes);
  loop_.watch(inotify_.get(), POLLIN, [this](short) { on_readable(); });
  return {};
}

// One read: what is left waits for the next turn of the loop.
void FileWatcher::on_readable() {
  const ssize_t got = ::read(inotify_.get(), buffer_.data(), buffer_.size());
  Told told;
  for (ssize_t at = 0; at < got;) {
    inotify_event event;
    std::memcpy(&event, buffer_.data() + at, sizeof event);
    const char* name = buffer_.data() + at + sizeof event;
    at += static_cast<ssize_t>(sizeof event + event.len);
    if ((event.mask & IN_Q_OVERFLOW) != 0) {
      on_overflow(told);
    } else {
      // Zeros fill it up.
      sort_in(event, {name, ::strnlen(name, event.len)}, told);
    }
  }
  tell(told);
}

void FileWatcher::sort_in(const inotify_event& event, std::string_view name, Told& told) {
  const auto watch = watches_.find(event.wd);
  if (watch == watches_.end()) return;
  for (const auto& [key, mask] : watch->second) {
    if ((event.mask & (mask | IN_IGNORED | IN_UNMOUNT)) == 0) continue;
    told[key].events.push_back({event.wd, event.mask, name});
  }
  if ((event.mask & IN_IGNORED) == 0) return;
  for (const auto& [key, mask] : watch->second) groups_.at(key)->ids_.erase(event.wd);
  watches_.erase(watch);
}

// Whoever fills the queue makes everybody look: not more often than once in the interval, and once more after
// the last time.
void FileWatcher::on_overflow(Told& told) {
  if (overflow_timer_) {
    overflowed_since_ = true;
    return;
  }
  for (const auto& [key, group] : groups_) told[key].lost = true;
  overflow_timer_ = loop_.after(overflow_interval_, [this] { on_overflow_timer(); });
}

void FileWatcher::on_overflow_timer() {
  overflow_timer_.reset();
  if (!std::exchange(overflowed_since_, false)) return;
  Told told;
  on_overflow(told);
  tell(told);
}

void FileWatcher::tell(const Told& told) {
  for (const auto& [key, changes] : told) {
    const auto group = groups_.find(key);
    if (group == groups_.end()) continue;
    const Group::OnChanges on_changes = group->second->on_changes_;  // it may end its own group
    on_changes(changes);
  }
}

}  // namespace sallyport::os
