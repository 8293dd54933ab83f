#include "sandbox/workspace_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "sandbox/trial_test.h"

namespace sallyport::sandbox {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Everything in the workspace belongs to the sandbox's user, as it would.
void give_to_user(const Trial& trial) {
  for (const auto& entry : fs::recursive_directory_iterator(trial.workspace())) {
    ASSERT_EQ(::lchown(entry.path().c_str(), trial.ids().uid, trial.ids().gid), 0);
  }
}

void make_repository(const std::string& git) {
  fs::create_directories(git + "/hooks");
  fs::create_directories(git + "/objects");
  fs::create_directories(git + "/refs/heads");
  std::ofstream(git + "/HEAD") << "ref: refs/heads/main\n";
  std::ofstream(git + "/config") << "[core]\n\trepositoryformatversion = 0\n\tbare = false\n";
}

const GuardInput kNoInput;

// To be kept until the sandbox is gone.
WorkspaceGuard add_guard(Trial& trial) {
  auto guard = guard_workspace(trial.mounts, kNoInput);
  if (!guard) throw std::runtime_error(guard.error().detail);
  for (Mount& mount : guard->mounts) trial.mounts.push_back(std::move(mount));
  return std::move(*guard);
}

Result<WorkspaceGuard> guard_of(const std::string& path) {
  std::vector<Mount> mounts;
  mounts.push_back(*open_mount({.path = path}, {}));
  return guard_workspace(mounts, kNoInput);
}

TEST(WorkspaceGuard, KeepsWhatGitWouldRunOutOfTheSandboxesHands) {
  Trial trial;
  make_repository(trial.workspace() + "/.git");
  make_repository(trial.workspace() + "/.git/modules/dir/sub");
  give_to_user(trial);
  const WorkspaceGuard guard = add_guard(trial);
  trial.workload.argv = {
      "sh", "-c",
      "exec 2>/dev/null\n"
      "mv .git .git2 && echo renamed; rm -rf .git; test -f .git/config || echo removed\n"
      "echo x >> .git/config && echo config; touch .git/hooks/post-checkout && echo hooks\n"
      "mv .git/config .git/c && echo moved; mv .git/hooks .git/h && echo moved hooks\n"
      "echo x >> .git/modules/dir/sub/config && echo module\n"
      "touch .git/modules/dir/sub/hooks/x && echo module hooks\n"
      "rm -f .git/config; git config x.y z && echo git config\n"
      "echo tried; touch .git/new && echo writable"};
  EXPECT_EQ(trial.finish().shell_code(), 0);
  EXPECT_EQ(trial.output(), "tried\nwritable\n");
}

TEST(WorkspaceGuard, LetsGitCommitAllTheSame) {
  Trial trial;
  make_repository(trial.workspace() + "/.git");
  give_to_user(trial);
  const WorkspaceGuard guard = add_guard(trial);
  trial.workload.argv = {
      "sh", "-c",
      "echo x > f && git add f && git commit -q -m x && git checkout -q -b next && git log --format=%s"};
  EXPECT_EQ(trial.finish().shell_code(), 0) << trial.output();
  EXPECT_EQ(trial.output(), "x\n");
}

TEST(WorkspaceGuard, KeepsAGitFileReadOnly) {
  Trial trial;
  std::ofstream(trial.workspace() + "/.git") << "gitdir: /elsewhere\n";
  give_to_user(trial);
  const WorkspaceGuard guard = add_guard(trial);
  trial.workload.argv = {
      "sh", "-c", "exec 2>/dev/null; echo x > .git && echo written; rm .git && echo removed; echo tried"};
  EXPECT_EQ(trial.finish().shell_code(), 0);
  EXPECT_EQ(trial.output(), "tried\n");
}

TEST(WorkspaceGuard, RefusesARepositoryBehindALink) {
  const TestFolder folder;
  make_repository(folder.path() + "/real");
  fs::create_directories(folder.path() + "/work");
  fs::create_symlink("../real", folder.path() + "/work/.git");
  const auto guard = guard_of(folder.path() + "/work");
  ASSERT_FALSE(guard.has_value());
  EXPECT_THAT(guard.error().detail, HasSubstr("symbolic link"));
}

TEST(WorkspaceGuard, HidesSockets) {
  Trial trial;
  fs::create_directories(trial.workspace() + "/deep/down");
  const std::string path = trial.workspace() + "/deep/down/daemon.ipc";
  const Fd daemon = listen_at(path);
  ASSERT_EQ(::chmod(path.c_str(), 0777), 0);
  trial.workload.argv = {"perl", "-MIO::Socket::UNIX", "-e",
                         "print IO::Socket::UNIX->new(Peer => 'deep/down/daemon.ipc') ? 'connected' : $!"};
  {
    // The door is really there without the guard.
    Trial open;
    open.mounts.front() = *open_mount({.path = trial.workspace()}, {});
    open.workload.cwd = trial.workspace();
    open.workload.argv = trial.workload.argv;
    static_cast<void>(open.finish());
    EXPECT_EQ(open.output(), "connected");
  }
  const WorkspaceGuard guard = add_guard(trial);
  EXPECT_THAT(guard.hidden_sockets, ElementsAre(path));
  EXPECT_EQ(guard.search, Search::Whole);
  static_cast<void>(trial.finish());
  EXPECT_EQ(trial.output(), "Connection refused");
}

TEST(WorkspaceGuard, AddsNothingToAPlainFolder) {
  const TestFolder folder;
  const auto guard = guard_of(folder.path());
  ASSERT_TRUE(guard.has_value());
  EXPECT_TRUE(guard->mounts.empty());
}

}  // namespace
}  // namespace sallyport::sandbox
