#include "sandbox/workspace_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "os/event_loop.h"
#include "os/file_watcher_test.h"
#include "sandbox/folder_test.h"
#include "sandbox/trial_test.h"

namespace sallyport::sandbox {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A writable mount with a repository, watched, and what is found.
class WorkspaceWatchTest : public ::testing::Test {
 protected:
  // A failing test ends by this; one that passes never waits for it.
  static constexpr std::chrono::milliseconds kGivenUp{20'000};

  void begin() {
    fs::create_directories(path("repository/.git/worktrees"));
    fs::create_directories(path("other"));
    std::vector<Mount> mounts;
    mounts.push_back(*open_mount({.path = path("repository")}, {}));
    auto guard = guard_workspace(mounts, {});
    ASSERT_TRUE(guard.has_value()) << guard.error().detail;
    guard_ = std::move(*guard);
    watch_ = make_watch();
    ASSERT_TRUE(watch_->begin());
  }
  std::unique_ptr<WorkspaceWatch> make_watch() {
    return std::make_unique<WorkspaceWatch>(watcher_, guard_, [this](const std::vector<Finding>& findings) {
      found_.insert(found_.end(), findings.begin(), findings.end());
      loop_.stop();
    });
  }

  void run_until_found() {
    const auto guard = loop_.after(kGivenUp, [this] {
      ADD_FAILURE() << "nothing was found";
      loop_.stop();
    });
    ASSERT_TRUE(loop_.run());
    loop_.cancel(guard);
  }
  void expect_end_by(const std::string& text) const {
    ASSERT_EQ(found_.size(), 1U);
    EXPECT_EQ(found_.front().consequence, Finding::Consequence::EndSession);
    EXPECT_THAT(found_.front().text, HasSubstr(text));
  }
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }

  const TestFolder folder_;
  os::EventLoop loop_;
  os::FileWatcher watcher_{loop_};
  WorkspaceGuard guard_;
  std::vector<Finding> found_;
  std::unique_ptr<WorkspaceWatch> watch_;
};

TEST_F(WorkspaceWatchTest, WhatIsPlantedEndsTheSession) {
  begin();
  std::ofstream(path("repository/.git/commondir")) << "/elsewhere";
  run_until_found();
  expect_end_by(path("repository/.git/commondir") + " was planted");
  EXPECT_FALSE(fs::exists(path("repository/.git/commondir")));
}

// Made meanwhile, and watched from then on.
TEST_F(WorkspaceWatchTest, WhatIsPlantedInANewWorktreeEndsTheSession) {
  begin();
  const std::string worktree = path("repository/.git/worktrees/one");
  os::FileWatcher::Group later(watcher_, [&](const os::FileWatcher::Changes&) {
    EXPECT_THAT(found_, IsEmpty());
    std::ofstream(worktree + "/commondir") << "/elsewhere";
  });
  ASSERT_TRUE(later.add(path("other"), IN_CREATE));
  fs::create_directory(worktree);
  fs::create_directory(path("other/later"));
  run_until_found();
  expect_end_by("commondir was planted");
}

TEST_F(WorkspaceWatchTest, ASocketThatAProgramOutsideMakesEndsTheSession) {
  begin();
  {
    // Nobody outside is bound to it any more, as to one that the sandbox made.
    const Fd closed = listen_at(path("repository/inside"));
  }
  const Fd daemon = listen_at(path("repository/daemon"));
  run_until_found();
  expect_end_by(path("repository/daemon"));
}

// The queue of events is shared with all sessions.
TEST_F(WorkspaceWatchTest, AFloodElsewhereHidesNothing) {
  const Fd hidden = [this] {
    fs::create_directories(path("repository"));
    return listen_at(path("repository/hidden"));
  }();
  begin();
  os::FileWatcher::Group flooded(watcher_, [](const os::FileWatcher::Changes&) {});
  ASSERT_TRUE(flooded.add(path("other"), IN_CREATE));
  os::overflow_queue(path("other"));
  const Fd daemon = listen_at(path("repository/daemon"));
  std::ofstream(path("repository/.git/commondir")) << "/elsewhere";
  run_until_found();
  ASSERT_EQ(found_.size(), 2U);
  EXPECT_THAT(found_.front().text, HasSubstr(path("repository/daemon")));
  EXPECT_THAT(found_.back().text, HasSubstr(path("repository/.git/commondir") + " was planted"));
}

TEST_F(WorkspaceWatchTest, AWorktreeThatWasMadeInAFloodIsWatched) {
  begin();
  const std::string worktree = path("repository/.git/worktrees/one");
  os::FileWatcher::Group flooded(watcher_, [&](const os::FileWatcher::Changes& changes) {
    if (!changes.lost) return;
    EXPECT_THAT(found_, IsEmpty());
    std::ofstream(worktree + "/commondir") << "/elsewhere";
  });
  ASSERT_TRUE(flooded.add(path("other"), IN_CREATE));
  os::overflow_queue(path("other"));
  fs::create_directory(worktree);
  run_until_found();
  expect_end_by("commondir was planted");
}

TEST_F(WorkspaceWatchTest, ManyNeedOneInotifyInstance) {
  const std::size_t before = os::open_inotify_instances();
  begin();
  std::vector<std::unique_ptr<WorkspaceWatch>> watches;
  for (int each = 0; each < 200; ++each) {
    watches.push_back(make_watch());
    ASSERT_TRUE(watches.back()->begin());
  }
  EXPECT_EQ(os::open_inotify_instances(), before + 1);
}

TEST_F(WorkspaceWatchTest, TooManyWorktreesLaterEndTheSession) {
  begin();
  EXPECT_THAT(watch_->look(), IsEmpty());
  for (int each = 0; each < 257; ++each) {
    fs::create_directory(path("repository/.git/worktrees/") + std::to_string(each));
  }
  found_ = watch_->look();
  expect_end_by("more than 256 linked worktrees");
}

}  // namespace
}  // namespace sallyport::sandbox
