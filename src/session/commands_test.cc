#include "session/commands.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <optional>

namespace sallyport::session {
namespace {

using sandbox::Exec;
using sandbox::ForwardSignal;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CommandsTest : public ::testing::Test {
 protected:
  CommandsTest() { commands_.set_defaults({"HOME=/home/x", "LANG=C"}, "/work"); }

  static std::array<Fd, 3> open_three(const char* path = "/dev/null") {
    std::array<Fd, 3> stdio;
    for (Fd& fd : stdio) fd = Fd(::open(path, O_RDONLY | O_CLOEXEC));
    return stdio;
  }

  Commands::Callbacks note() {
    return {.on_started = [this] { said_.emplace_back("started"); },
            .on_exited = [this](int code) { said_.push_back("exited " + std::to_string(code)); },
            .on_failed = [this](const Error& why) { said_.push_back("failed: " + why.detail); }};
  }

  Result<Commands::Id> start(std::vector<std::string> argv = {"true"}) {
    return commands_.start({.argv = std::move(argv), .environment = {}, .cwd = ""}, open_three(), note());
  }

  std::string why_not(const Command& command, const std::array<Fd, 3>& stdio) {
    const auto id = commands_.start(command, stdio, note());
    return id ? "" : id.error().detail;
  }

  Status send(const sandbox::ToInit& message, std::span<const int> fds) {
    if (full_) return fail(Reason::Overloaded, "full");
    sent_.push_back(message);
    if (!std::holds_alternative<Exec>(message)) return {};
    EXPECT_EQ(fds.size(), 4U);
    workload_ = sandbox::unpack_workload(Fd(::dup(fds[0]))).value();
    return {};
  }

  bool full_ = false;
  std::vector<sandbox::ToInit> sent_;
  std::optional<sandbox::Workload> workload_;  // of the last Exec
  std::vector<std::string> said_;
  Commands commands_{
      [this](const sandbox::ToInit& message, std::span<const int> fds) { return send(message, fds); }};
};

TEST_F(CommandsTest, StartsACommandWithTheSandboxesEnvironmentAndItsOwn) {
  const auto id = commands_.start(
      {.argv = {"make", "test"}, .environment = {"LANG=de", "CI=1"}, .cwd = "/else"}, open_three(), note());
  ASSERT_TRUE(id) << id.error().detail;
  EXPECT_EQ(std::get<Exec>(sent_.at(0)).command, *id);
  EXPECT_THAT(workload_->argv, ElementsAre("make", "test"));
  EXPECT_THAT(workload_->environment, ElementsAre("CI=1", "HOME=/home/x", "LANG=de", "PWD=/else"));
  EXPECT_EQ(workload_->cwd, "/else");
  commands_.hear(sandbox::Started{*id});
  commands_.hear(sandbox::Exited{.command = *id, .code = 3});
  EXPECT_THAT(said_, ElementsAre("started", "exited 3"));
  EXPECT_EQ(commands_.running(), 0U);
}

TEST_F(CommandsTest, StandsInTheWorkspaceUnlessItIsTold) {
  ASSERT_TRUE(start());
  EXPECT_EQ(workload_->cwd, "/work");
}

TEST_F(CommandsTest, RefusesWhatMayNotBe) {
  EXPECT_THAT(why_not({.argv = {}, .environment = {}, .cwd = ""}, open_three()), HasSubstr("without a word"));
  EXPECT_THAT(why_not({.argv = {"true"}, .environment = {"HOME=/x"}, .cwd = ""}, open_three()),
              HasSubstr("--env HOME"));
  EXPECT_THAT(why_not({.argv = {"true"}, .environment = {"CI"}, .cwd = ""}, open_three()),
              HasSubstr("has no value"));
  EXPECT_THAT(why_not({.argv = {"true"}, .environment = {}, .cwd = ""}, open_three("/")),
              HasSubstr("is a folder"));
  EXPECT_THAT(why_not({.argv = {"true"}, .environment = {}, .cwd = ""}, {}), HasSubstr("three descriptors"));
  EXPECT_TRUE(sent_.empty());
  EXPECT_EQ(commands_.running(), 0U);
}

TEST_F(CommandsTest, HasALimit) {
  for (std::size_t i = 0; i < sandbox::kMaxCommands; ++i) ASSERT_TRUE(start());
  const auto more = start();
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().reason, Reason::TooMany);
}

TEST_F(CommandsTest, FailsWhenInitTakesNothing) {
  full_ = true;
  const auto id = start();
  ASSERT_FALSE(id);
  EXPECT_THAT(id.error().detail, HasSubstr("takes no command now: full"));
  EXPECT_EQ(commands_.running(), 0U);
}

TEST_F(CommandsTest, DoesNotBelieveInitMoreThanItsCommandsEnds) {
  const auto id = start();
  ASSERT_TRUE(id);
  // A workload that has taken init over may say anything, of any number, any number of times.
  for (const Commands::Id other : {sandbox::kOwnCommand, *id + 1, UINT32_MAX}) {
    commands_.hear(sandbox::Started{other});
    commands_.hear(sandbox::Refused{other, "no"});
    commands_.hear(sandbox::Exited{.command = other});
  }
  EXPECT_TRUE(said_.empty());
  commands_.hear(sandbox::Started{*id});
  commands_.hear(sandbox::Started{*id});
  commands_.hear(sandbox::Refused{*id, "no room"});
  commands_.hear(sandbox::Exited{.command = *id});
  EXPECT_THAT(said_, ElementsAre("started", "failed: the sandbox cannot start it: no room"));
}

TEST_F(CommandsTest, SignalsThoseThatRunAlone) {
  const auto id = start();
  ASSERT_TRUE(id);
  sent_.clear();
  commands_.signal(*id + 1, SIGTERM);
  EXPECT_TRUE(sent_.empty());
  commands_.signal(*id, SIGKILL);
  EXPECT_EQ(std::get<ForwardSignal>(sent_.at(0)).signal, SIGKILL);
  commands_.hear(sandbox::Exited{.command = *id, .signal = SIGKILL});
  commands_.signal(*id, SIGTERM);
  commands_.signal_all(SIGTERM);
  EXPECT_EQ(sent_.size(), 1U);
}

TEST_F(CommandsTest, TellsEveryCallerWhenTheSandboxEnds) {
  ASSERT_TRUE(start());
  ASSERT_TRUE(start());
  int idle = 0;
  commands_.when_none_runs([&] { ++idle; });
  commands_.end_all({Reason::SessionEnded, "over"});
  EXPECT_THAT(said_, ElementsAre("failed: over", "failed: over"));
  EXPECT_EQ(idle, 1);
}

}  // namespace
}  // namespace sallyport::session
