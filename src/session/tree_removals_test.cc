#include "session/tree_removals.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "sandbox/folder_test.h"

namespace sallyport::session {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class TreeRemovalsTest : public ::testing::Test {
 protected:
  // As a sandbox may leave it: with a folder that its owner may not look into.
  std::string make(const std::string& name) const {
    const fs::path folder = fs::path(top_.path()) / name;
    fs::create_directories(folder / "work/closed/inner");
    std::ofstream(folder / "work/closed/inner/file") << "text";
    fs::permissions(folder / "work/closed", fs::perms::none);
    return folder;
  }
  // Runs the loop until it holds.
  void wait_for(const std::function<bool()>& condition) {
    const auto watchdog = loop_.after(60s, [this] {
      ADD_FAILURE() << "it never came";
      loop_.stop();
    });
    const auto look = loop_.every(1ms, [&] {
      if (condition()) loop_.stop();
    });
    ASSERT_TRUE(loop_.run());
    loop_.cancel(look);
    loop_.cancel(watchdog);
  }

  const sandbox::TestFolder top_;
  os::EventLoop loop_;
};

TEST_F(TreeRemovalsTest, RemovesOneAfterTheOtherWhileTheLoopRuns) {
  TreeRemovals removals(loop_);
  const std::string first = make("first");
  const std::string second = make("second");
  removals.remove(first, std::nullopt);
  removals.remove(second, std::nullopt);
  EXPECT_TRUE(fs::exists(second));  // nobody waited for it
  wait_for([&] { return !fs::exists(first) && !fs::exists(second); });
}

TEST_F(TreeRemovalsTest, HoldsTheLockForAsLongAsTheFolderIsThere) {
  TreeRemovals removals(loop_);
  const std::string folder = make("locked");
  Fd lock(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(::flock(lock.get(), LOCK_EX | LOCK_NB), 0);
  const Fd other(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  removals.remove(folder, std::move(lock));
  EXPECT_NE(::flock(other.get(), LOCK_EX | LOCK_NB), 0);
  wait_for([&] { return ::flock(other.get(), LOCK_EX | LOCK_NB) == 0; });
  EXPECT_FALSE(fs::exists(folder));
}

TEST_F(TreeRemovalsTest, EndsWhenAllIsGone) {
  const std::string first = make("first");
  const std::string second = make("second");
  {
    TreeRemovals removals(loop_);
    removals.remove(first, std::nullopt);
    removals.remove(second, std::nullopt);
  }
  EXPECT_FALSE(fs::exists(first));
  EXPECT_FALSE(fs::exists(second));
}

// Its lock is free, so that the next start finds it.
TEST_F(TreeRemovalsTest, LeavesWhatIsTooMuchAtOnceToTheNextStart) {
  const std::string last = make("last");
  Fd lock(::open(last.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(::flock(lock.get(), LOCK_EX | LOCK_NB), 0);
  const Fd other(::open(last.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  {
    TreeRemovals removals(loop_);
    for (std::size_t i = 0; i < TreeRemovals::kMaxRemovals; ++i)
      removals.remove(make(std::to_string(i)), std::nullopt);
    removals.remove(last, std::move(lock));
    EXPECT_EQ(::flock(other.get(), LOCK_EX | LOCK_NB), 0);
  }
  EXPECT_TRUE(fs::exists(last));
  EXPECT_FALSE(fs::exists(top_.path() + "/0"));
  fs::permissions(last + "/work/closed", fs::perms::owner_all);
}

TEST_F(TreeRemovalsTest, WhatIsNotThereIsNoTrouble) {
  TreeRemovals removals(loop_);
  removals.remove(top_.path() + "/nothing", std::nullopt);
  const std::string folder = make("folder");
  removals.remove(folder, std::nullopt);
  wait_for([&] { return !fs::exists(folder); });
}

}  // namespace
}  // namespace sallyport::session
