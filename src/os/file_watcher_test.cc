#include "os/file_watcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <utility>

#include "os/file_watcher_test.h"
#include "os/local_test.h"

namespace sallyport::os {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
namespace fs = std::filesystem;

// What one group was told.
struct Listener {
  explicit Listener(FileWatcher& watcher)
      : group(std::make_unique<FileWatcher::Group>(
            watcher, [this](const FileWatcher::Changes& changes) { on_changes(changes); })) {}

  void on_changes(const FileWatcher::Changes& changes) {
    ++calls;
    lost += changes.lost ? 1 : 0;
    for (const FileWatcher::Event& event : changes.events) {
      if ((event.mask & IN_IGNORED) != 0) ended.push_back(event.id);
      if (!event.name.empty()) names.emplace_back(event.name);
    }
    if (then) then();
  }

  int calls = 0;
  int lost = 0;
  std::vector<std::string> names;
  std::vector<int> ended;
  std::function<void()> then;
  std::unique_ptr<FileWatcher::Group> group;
};

class FileWatcherTest : public testing::Test {
 protected:
  // A failing test ends by this; one that passes never waits for it.
  static constexpr std::chrono::milliseconds kGivenUp{20'000};

  void run_until(const std::function<bool()>& is_done) {
    const auto guard = loop_.after(kGivenUp, [this] {
      ADD_FAILURE() << "it did not come to pass";
      loop_.stop();
    });
    const auto look = loop_.every(std::chrono::milliseconds(1), [&] {
      if (is_done()) loop_.stop();
    });
    EXPECT_TRUE(loop_.run());
    loop_.cancel(look);
    loop_.cancel(guard);
  }
  // Until all that happened before is told.
  void settle(FileWatcher& watcher) {
    const PrivateFolder place;
    Listener last(watcher);
    EXPECT_TRUE(last.group->add(place.path(), IN_CLOSE_WRITE));
    run_until([&] {
      put(place / "last");  // again: the queue may be full
      return !last.names.empty();
    });
  }
  static void put(const std::string& path) { std::ofstream(path) << "x"; }
  void flood() const { overflow_queue(folder_.path()); }

  PrivateFolder folder_;
  EventLoop loop_;
  FileWatcher watcher_{loop_};
};

TEST_F(FileWatcherTest, TellsEachOfOneFolderWhatItAskedFor) {
  Listener makings(watcher_);
  Listener removals(watcher_);
  ASSERT_TRUE(makings.group->add(folder_.path(), IN_CREATE | IN_ONLYDIR));
  ASSERT_TRUE(removals.group->add(folder_.path(), IN_DELETE | IN_ONLYDIR));
  put(folder_ / "one");
  put(folder_ / "two");
  fs::remove(folder_ / "two");
  settle(watcher_);
  EXPECT_THAT(makings.names, ElementsAre("one", "two"));
  EXPECT_THAT(removals.names, ElementsAre("two"));
}

TEST_F(FileWatcherTest, GivesTheSameFolderOneIdAndBothMasks) {
  Listener listener(watcher_);
  const auto first = listener.group->add(folder_.path(), IN_CREATE);
  const auto second = listener.group->add(folder_.path(), IN_DELETE);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(*first, *second);
  put(folder_ / "one");
  fs::remove(folder_ / "one");
  settle(watcher_);
  EXPECT_THAT(listener.names, ElementsAre("one", "one"));
}

TEST_F(FileWatcherTest, TellsTheOneThatStaysWhenAnotherEnds) {
  Listener stays(watcher_);
  Listener goes(watcher_);
  ASSERT_TRUE(stays.group->add(folder_.path(), IN_CREATE));
  ASSERT_TRUE(goes.group->add(folder_.path(), IN_CREATE));
  goes.group.reset();
  put(folder_ / "one");
  settle(watcher_);
  EXPECT_THAT(stays.names, ElementsAre("one"));
  EXPECT_THAT(goes.names, IsEmpty());
}

TEST_F(FileWatcherTest, TellsNothingOfTheTimeBeforeAFolderWasWatchedAnew) {
  Listener first(watcher_);
  ASSERT_TRUE(first.group->add(folder_.path(), IN_CREATE));
  put(folder_ / "before");
  first.group.reset();
  Listener second(watcher_);
  ASSERT_TRUE(second.group->add(folder_.path(), IN_CREATE));
  put(folder_ / "after");
  settle(watcher_);
  EXPECT_THAT(first.names, IsEmpty());
  EXPECT_THAT(second.names, ElementsAre("after"));
  EXPECT_THAT(second.ended, IsEmpty());
}

TEST_F(FileWatcherTest, TellsAllWhenTheFolderIsGone) {
  const std::string place = folder_ / "place";
  fs::create_directory(place);
  Listener one(watcher_);
  Listener two(watcher_);
  const auto id = one.group->add(place, IN_CREATE);
  ASSERT_TRUE(id && two.group->add(place, IN_DELETE));
  fs::remove(place);
  settle(watcher_);
  EXPECT_THAT(one.ended, ElementsAre(*id));
  EXPECT_THAT(two.ended, ElementsAre(*id));

  fs::create_directory(place);
  const auto again = one.group->add(place, IN_CREATE);
  ASSERT_TRUE(again);
  EXPECT_NE(*again, *id);
  put(place + "/one");
  settle(watcher_);
  EXPECT_THAT(one.names, ElementsAre("one"));
  EXPECT_THAT(two.names, IsEmpty());
}

TEST_F(FileWatcherTest, TakesTheEndOfAGroupWhoseFolderIsGoneUnread) {
  const std::string place = folder_ / "place";
  fs::create_directory(place);
  Listener listener(watcher_);
  ASSERT_TRUE(listener.group->add(place, IN_CREATE));
  fs::remove(place);
  listener.group.reset();
  settle(watcher_);
  EXPECT_EQ(listener.calls, 0);
}

TEST_F(FileWatcherTest, CallsOnceForAllOfATurn) {
  Listener listener(watcher_);
  ASSERT_TRUE(listener.group->add(folder_.path(), IN_CREATE));
  for (int each = 0; each < 100; ++each) put(folder_ / std::to_string(each));
  settle(watcher_);
  EXPECT_EQ(listener.names.size(), 100U);
  EXPECT_EQ(listener.calls, 1);
}

TEST_F(FileWatcherTest, TakesABoundedPartOfAFloodInOneTurn) {
  Listener listener(watcher_);
  ASSERT_TRUE(listener.group->add(folder_.path(), IN_CREATE));
  const std::size_t more = FileWatcher::kMaxReadBytes / sizeof(inotify_event);
  for (std::size_t each = 0; each < more; ++each) {
    ASSERT_EQ(::mkfifo((folder_ / std::to_string(each)).c_str(), 0600), 0);
  }
  settle(watcher_);
  EXPECT_EQ(listener.names.size(), more);
  EXPECT_GT(listener.calls, 1);
}

TEST_F(FileWatcherTest, LetsACallbackEndItsOwnGroupAndOthers) {
  Listener first(watcher_);
  Listener second(watcher_);
  Listener third(watcher_);
  for (const Listener* each : {&first, &second, &third}) {
    ASSERT_TRUE(each->group->add(folder_.path(), IN_CREATE));
  }
  first.then = [&] {
    first.group.reset();
    second.group.reset();
  };
  put(folder_ / "one");
  settle(watcher_);
  put(folder_ / "two");
  settle(watcher_);
  EXPECT_EQ(first.calls, 1);
  EXPECT_EQ(second.calls, 0);
  EXPECT_THAT(third.names, ElementsAre("one", "two"));
}

TEST_F(FileWatcherTest, LetsACallbackWatchMoreAndBeginGroups) {
  const std::string inner = folder_ / "inner";
  Listener listener(watcher_);
  std::unique_ptr<Listener> another;
  ASSERT_TRUE(listener.group->add(folder_.path(), IN_CREATE));
  listener.then = [&] {
    if (another) return;
    another = std::make_unique<Listener>(watcher_);
    EXPECT_TRUE(another->group->add(inner, IN_CREATE));
    EXPECT_TRUE(listener.group->add(inner, IN_CREATE));
  };
  fs::create_directory(inner);
  settle(watcher_);
  put(inner + "/one");
  settle(watcher_);
  EXPECT_THAT(listener.names, ElementsAre("inner", "one"));
  ASSERT_NE(another, nullptr);
  EXPECT_THAT(another->names, ElementsAre("one"));
}

TEST_F(FileWatcherTest, TellsEverybodyThatEventsWereLost) {
  const PrivateFolder quiet;
  Listener flooded(watcher_);
  Listener other(watcher_);
  ASSERT_TRUE(flooded.group->add(folder_.path(), IN_CREATE));
  ASSERT_TRUE(other.group->add(quiet.path(), IN_CREATE));
  flood();
  put(quiet / "unseen");
  run_until([&] { return other.lost > 0; });
  EXPECT_EQ(flooded.lost, 1);
  EXPECT_EQ(other.lost, 1);
  EXPECT_EQ(other.calls, 1);
  EXPECT_THAT(other.names, IsEmpty());
}

TEST_F(FileWatcherTest, TellsOfLostEventsOnceInAWhile) {
  FileWatcher watcher(loop_, std::chrono::hours(1));
  Listener listener(watcher);
  ASSERT_TRUE(listener.group->add(folder_.path(), IN_CREATE));
  for (int each = 0; each < 3; ++each) {
    flood();
    run_until([&] { return listener.lost > 0; });
    settle(watcher);
  }
  EXPECT_EQ(listener.lost, 1);
}

TEST_F(FileWatcherTest, TellsOfTheLastLostEventsTooWithTime) {
  FileWatcher watcher(loop_, std::chrono::milliseconds(500));
  Listener flooded(watcher);
  Listener other(watcher);
  ASSERT_TRUE(flooded.group->add(folder_.path(), IN_CREATE));
  bool is_again = false;
  flooded.then = [&] {
    if (flooded.lost > 0 && !std::exchange(is_again, true)) flood();
  };
  flood();
  run_until([&] { return other.lost == 2; });
  EXPECT_EQ(flooded.lost, 2);
}

TEST_F(FileWatcherTest, UsesOneInstanceFromTheFirstWatchOn) {
  const std::size_t before = open_inotify_instances();
  std::vector<std::unique_ptr<Listener>> listeners;
  for (int each = 0; each < 200; ++each) listeners.push_back(std::make_unique<Listener>(watcher_));
  EXPECT_EQ(open_inotify_instances(), before);
  for (const auto& each : listeners) ASSERT_TRUE(each->group->add(folder_.path(), IN_CREATE));
  EXPECT_EQ(open_inotify_instances(), before + 1);
}

TEST_F(FileWatcherTest, SaysWhatCannotBeWatched) {
  Listener listener(watcher_);
  const auto id = listener.group->add(folder_ / "missing", IN_CREATE);
  ASSERT_FALSE(id);
  EXPECT_THAT(id.error().detail, HasSubstr(folder_ / "missing"));
}

}  // namespace
}  // namespace sallyport::os
