#include "session/workspace_looks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>

#include "sandbox/folder_test.h"

namespace sallyport::session {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A workspace with a repository of the user's.
class WorkspaceLooksTest : public ::testing::Test {
 protected:
  void SetUp() override {
    shell("git init -q && touch f && git add f && git commit -q -m x && ln -s ../own .git/own");
    std::vector<sandbox::Mount> mounts;
    mounts.push_back(*sandbox::open_mount({.path = folder_.path()}, {}));
    auto guard = sandbox::guard_workspace(mounts, {});
    ASSERT_TRUE(guard.has_value()) << guard.error().detail;
    guard_ = std::move(*guard);
    looks_.emplace(loop_, watcher_, guard_, std::nullopt, [this](const auto& findings) {
      for (const sandbox::Finding& finding : findings) texts_.push_back(finding.text);
    });
  }

  void shell(const std::string& script) const { ASSERT_EQ(folder_.shell(script), 0) << script; }

  void begin() {
    looks_->begin([this](const Status& looked) {
      EXPECT_TRUE(looked) << looked.error().detail;
      loop_.stop();
    });
    ASSERT_TRUE(loop_.run());
  }

  void end() {
    looks_->look_last([this] {
      ++ends_;
      loop_.stop();
    });
    EXPECT_EQ(ends_, 0);  // nobody waited for it
    looks_->look();
    ASSERT_TRUE(loop_.run());
    EXPECT_EQ(ends_, 1);
  }

  const sandbox::TestFolder folder_;
  sandbox::WorkspaceGuard guard_;
  os::EventLoop loop_;
  os::FileWatcher watcher_{loop_};
  std::optional<WorkspaceLooks> looks_;
  std::vector<std::string> texts_;
  int ends_ = 0;
};

TEST_F(WorkspaceLooksTest, WhatWasThereStaysAndWhatWasPlantedDoesNot) {
  begin();
  shell("ln -sf /tmp/elsewhere .git/COMMIT_EDITMSG");
  end();
  EXPECT_THAT(texts_, ElementsAre(HasSubstr("COMMIT_EDITMSG a symbolic link")));
  EXPECT_TRUE(fs::is_symlink(folder_.path() + "/.git/own"));
  EXPECT_FALSE(fs::is_symlink(folder_.path() + "/.git/COMMIT_EDITMSG"));
}

TEST_F(WorkspaceLooksTest, ALastLookIsNotGivenUp) {
  begin();
  shell("ln -sf /tmp/elsewhere .git/COMMIT_EDITMSG");
  looks_->look_last([] { ADD_FAILURE() << "nobody ran the loop"; });
  looks_.reset();
  EXPECT_FALSE(fs::is_symlink(folder_.path() + "/.git/COMMIT_EDITMSG"));
}

TEST_F(WorkspaceLooksTest, WithoutACopyTheStartFailsAndTheEndSaysSo) {
  begin();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};  // so there is no pipe
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  looks_->look_last([this] { ++ends_; });
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(ends_, 1);
  EXPECT_THAT(texts_, Contains(HasSubstr("was not looked at to its end")));
}

// Without it, all that is the user's own would count as planted.
TEST_F(WorkspaceLooksTest, WithoutTheFirstLookThereIsNoLast) {
  looks_->begin([](const Status&) { ADD_FAILURE() << "the session was given up before"; });
  looks_->look_last([this] { ++ends_; });
  EXPECT_EQ(ends_, 1);
  EXPECT_THAT(texts_, IsEmpty());
  EXPECT_TRUE(fs::is_symlink(folder_.path() + "/.git/own"));
  loop_.after(0ms, [this] { loop_.stop(); });
  ASSERT_TRUE(loop_.run());
}

}  // namespace
}  // namespace sallyport::session
