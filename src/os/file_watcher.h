// What changes in files and folders, told to many by one inotify instance: a user may have few of those
// (fs.inotify.max_user_instances, 128 by default), and a process may serve more sessions than that.
//
// They share the queue of events too, and one of them may be flooded by somebody hostile. So a turn of the
// loop takes a bounded part of it, and what overflows costs everybody one look in a while.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "os/event_loop.h"

struct inotify_event;

namespace sallyport::os {

class FileWatcher {
 public:
  // Of events, taken in one turn of the loop.
  static constexpr std::size_t kMaxReadBytes = 64 * 1024;
  // From one time that all are told of lost events to the next.
  static constexpr std::chrono::milliseconds kOverflowInterval{1000};

  struct Event {
    int id;                 // what Group::add() said
    std::uint32_t mask;     // as in inotify(7)
    std::string_view name;  // valid during the call; "" is the file or folder itself
  };
  struct Changes {
    std::vector<Event> events;
    bool lost = false;  // there were more, of which nothing is known
  };

  // All that one subscriber watches.
  class Group {
   public:
    // Called once a turn of the loop with what that turn brought. It may do anything, such as ending this
    // group or another: a group that was ended hears nothing more.
    using OnChanges = std::function<void(const Changes&)>;

    // `watcher` must outlive it.
    Group(FileWatcher& watcher, OnChanges on_changes);
    ~Group();
    Group(const Group&) = delete;
    Group& operator=(const Group&) = delete;

    // `mask`: the kinds of events, and IN_ONLYDIR or IN_DONT_FOLLOW. The same file again has the same id, and
    // both masks. The watch ends with the group, or with the file: then IN_IGNORED comes, whatever the mask,
    // and the id means nothing any more.
    Result<int> add(const std::string& path, std::uint32_t mask);

   private:
    friend class FileWatcher;

    FileWatcher& watcher_;
    const OnChanges on_changes_;
    const std::uint64_t key_;
    std::set<int> ids_;
  };

  explicit FileWatcher(EventLoop& loop, std::chrono::milliseconds overflow_interval = kOverflowInterval)
      : loop_(loop), overflow_interval_(overflow_interval) {}
  ~FileWatcher();
  FileWatcher(const FileWatcher&) = delete;
  FileWatcher& operator=(const FileWatcher&) = delete;

  // The first add() does it too; for who must tell whether anything can be watched.
  Status open();

 private:
  using Key = std::uint64_t;  // of a group; never given again
  using Told = std::map<Key, Changes>;

  void on_readable();
  void sort_in(const inotify_event& event, std::string_view name, Told& told);
  void on_overflow(Told& told);
  void on_overflow_timer();
  void tell(const Told& told);

  EventLoop& loop_;
  const std::chrono::milliseconds overflow_interval_;
  Fd inotify_;
  std::vector<char> buffer_;
  Key next_key_ = 0;
  std::map<Key, Group*> groups_;
  // By watch descriptor, which is the id of that file in every group: who watches it, with which mask. The
  // kernel does not give a number again before it has given all others, so one that is not here is one whose
  // last events came late.
  std::map<int, std::map<Key, std::uint32_t>> watches_;
  std::optional<EventLoop::TimerId> overflow_timer_;  // since all were told
  bool overflowed_since_ = false;
};

}  // namespace sallyport::os
