#include "control/session_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <boost/json.hpp>

namespace sallyport::control {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const session::Places kPlaces{.config = "/etc/s/config.toml", .state = "/var/s"};

Result<NewSession> read(std::string_view json) {
  return read_new_session(boost::json::parse({json.data(), json.size()}), kPlaces);
}

std::string why_not(std::string_view json) {
  const auto session = read(json);
  return session ? "" : session.error().detail;
}

TEST(NewSession, TakesWhatTheCallerNamesAndTheDaemonsOwnPlaces) {
  const auto session = read(R"({"name": "agent", "workspace": "/w", "home": "/h", "policy": "/p.toml",
    "trust": "/t", "mounts": ["/data:ro"], "git": ["h/o/r:push"], "environment": ["LANG=C"],
    "set_environment": ["CI=1"], "private_git": true, "ttl": "8h", "idle": "20min", "max_uses": 7})");
  ASSERT_TRUE(session) << session.error().detail;
  const session::Request& request = session->request;
  EXPECT_EQ(session->name, "agent");
  EXPECT_THAT(request.command, IsEmpty());
  EXPECT_EQ(request.working_directory, "/w");
  EXPECT_EQ(request.home, "/h");
  EXPECT_EQ(request.sources.policy_path, "/p.toml");
  EXPECT_EQ(request.sources.policy, config::Presence::Named);
  EXPECT_EQ(request.sources.trust_folder, "/t");
  EXPECT_EQ(request.sources.config_path, "/etc/s/config.toml");
  EXPECT_THAT(request.sources.git_options, ElementsAre("h/o/r:push"));
  EXPECT_THAT(request.mounts, ElementsAre("/data:ro"));
  EXPECT_THAT(request.environment, ElementsAre("LANG=C"));
  EXPECT_THAT(request.extra_environment, ElementsAre("CI=1"));
  EXPECT_TRUE(request.private_git);
  EXPECT_EQ(session->lifetime.ttl, std::chrono::hours(8));
  EXPECT_EQ(session->lifetime.idle, std::chrono::minutes(20));
  EXPECT_EQ(request.max_uses, 7U);
  EXPECT_EQ(request.audit_path, "/var/s/audit.jsonl");
  EXPECT_EQ(request.state_folder, "/var/s");
}

TEST(NewSession, HasTheUsualPolicyAndConsentsWithoutAWord) {
  const auto session = read(R"({"workspace": "/w", "home": "/h"})");
  ASSERT_TRUE(session);
  EXPECT_EQ(session->name, "");
  EXPECT_EQ(session->request.sources.policy_path, "/w/sallyport.toml");
  EXPECT_EQ(session->request.sources.policy, config::Presence::Usual);
  EXPECT_EQ(session->request.sources.trust_folder, "/var/s/trust");
  EXPECT_FALSE(session->request.private_git);
  EXPECT_FALSE(session->lifetime.is_limited());
  EXPECT_FALSE(session->request.max_uses);
}

TEST(NewSession, RefusesWhatHasNoPlainMeaning) {
  EXPECT_THAT(why_not(R"({"home": "/h"})"), HasSubstr("workspace: is missing"));
  EXPECT_THAT(why_not(R"({"workspace": "/w"})"), HasSubstr("home: is missing"));
  for (const char* path : {"w", "", "/a/../b", "/a/./b", "/a//b", "/a/"}) {
    EXPECT_THAT(why_not(std::string(R"({"home": "/h", "workspace": ")") + path + "\"}"),
                HasSubstr("workspace: must be an absolute path"))
        << path;
  }
  EXPECT_THAT(why_not(R"({"workspace": "/w", "home": "/h", "ttl": "8"})"), HasSubstr("ttl: must be a time"));
  EXPECT_THAT(why_not(R"({"workspace": "/w", "home": "/h", "max_uses": -1})"), HasSubstr("max_uses: "));
  // The operator's file and the log are the daemon's, whoever asks.
  for (const char* field : {"config", "audit", "state", "command", "owner", "id"}) {
    EXPECT_THAT(why_not(std::string(R"({"workspace": "/w", "home": "/h", ")") + field + R"(": "/x"})"),
                HasSubstr("is no field of this call"))
        << field;
  }
  EXPECT_THAT(why_not("[]"), HasSubstr("must be an object"));
}

TEST(CommandRequest, IsRead) {
  const auto command = read_command(boost::json::parse(
      R"({"command": ["make", ""], "set_environment": ["A=b"], "working_directory": "/x", "terminal": true})"));
  ASSERT_TRUE(command) << command.error().detail;
  EXPECT_THAT(command->argv, ElementsAre("make", ""));
  EXPECT_THAT(command->environment, ElementsAre("A=b"));
  EXPECT_EQ(command->cwd, "/x");
  EXPECT_EQ(command->terminal, sandbox::Terminal::Stdin);
  EXPECT_FALSE(read_command(boost::json::parse(R"({})")));
  EXPECT_FALSE(read_command(boost::json::parse(R"({"command": "make"})")));
  EXPECT_FALSE(read_command(boost::json::parse(R"({"command": ["x"], "working_directory": "x"})")));
}

TEST(SignalRequest, KnowsSignalsByTheirNames) {
  EXPECT_EQ(read_signal(boost::json::parse(R"({"signal": "TERM"})")), SIGTERM);
  EXPECT_EQ(read_signal(boost::json::parse(R"({"signal": "KILL"})")), SIGKILL);
  for (const char* bad : {R"({"signal": "SIGTERM"})", R"({"signal": 15})", R"({"signal": "SEGV"})", "{}"}) {
    EXPECT_FALSE(read_signal(boost::json::parse(bad))) << bad;
  }
}

}  // namespace
}  // namespace sallyport::control
