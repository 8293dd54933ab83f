#include "control/sessions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sallyport::control {
namespace {

using ::testing::HasSubstr;

constexpr uid_t kAnna = 1001;
constexpr uid_t kBert = 1002;
constexpr Viewer kRoot{.uid = 0, .sees_all = true};

// Nothing is started here but what cannot be planned; the rest is shown end to end.
class SessionsTest : public ::testing::Test {
 protected:
  static session::Request request(const std::string& workspace = "/nonexistent/widget") {
    session::Request request;
    request.working_directory = workspace;
    request.sources.policy_path = workspace + "/sallyport.toml";
    request.sources.config_path = "/nonexistent/config.toml";
    return request;
  }
  Result<Sessions::Entry*> add(uid_t owner, std::string name) {
    return sessions_.add(owner, std::move(name), request());
  }
  std::string why_not(uid_t owner, std::string name) {
    const auto entry = add(owner, std::move(name));
    return entry ? "" : entry.error().detail;
  }
  Sessions::Follower follower() {
    return {.until = SessionState::Running,
            .on_notice = nullptr,
            .on_done = [this](const Status& status, const Sessions::Entry&) {
              told_.push_back(status ? "ok" : status.error().detail);
            }};
  }

  os::EventLoop loop_;
  session::Gateway gateway_{loop_};
  Sessions sessions_{loop_, gateway_};
  std::vector<std::string> told_;
};

TEST_F(SessionsTest, TakesPlainNamesOnce) {
  for (const char* name : {"agent", "a.b_c-1", "7"}) EXPECT_EQ(why_not(kAnna, name), "") << name;
  for (const std::string& name :
       {std::string(".a"), std::string("-a"), std::string("a b"), std::string("a/b"), std::string("\n"),
        std::string(kMaxNameBytes + 1, 'a')}) {
    EXPECT_THAT(why_not(kAnna, name), HasSubstr("is no name")) << name;
  }
  EXPECT_THAT(why_not(kAnna, "agent"), HasSubstr("already"));
  EXPECT_EQ(why_not(kBert, "agent"), "") << "another's";
}

TEST_F(SessionsTest, MakesANameOfTheWorkspaces) {
  EXPECT_THAT((*add(kAnna, ""))->name, ::testing::MatchesRegex("widget-[0-9a-f]{4}"));
  EXPECT_THAT((*sessions_.add(kAnna, "", request("/")))->name, ::testing::StartsWith("session-"));
  EXPECT_THAT((*sessions_.add(kAnna, "", request("/x/.b\xc3\xa4 r")))->name, ::testing::StartsWith("br-"));
}

TEST_F(SessionsTest, FindsByNameAndById) {
  Sessions::Entry* agent = *add(kAnna, "agent");
  agent->id = "0123456789abcdef";
  Sessions::Entry* other = *add(kAnna, "other");
  other->id = "0123ffffffffffff";
  const Viewer anna{.uid = kAnna};
  EXPECT_EQ(sessions_.find(anna, "agent"), agent);
  EXPECT_EQ(sessions_.find(anna, "0123456789abcdef"), agent);
  EXPECT_EQ(sessions_.find(anna, "01234"), agent);
  EXPECT_EQ(sessions_.find(anna, "0123").error().status, 400) << "two";
  EXPECT_EQ(sessions_.find(anna, "012").error().status, 404) << "too short";
  EXPECT_EQ(sessions_.find(anna, "").error().status, 404);
  EXPECT_EQ(sessions_.find(anna, "age").error().status, 404) << "a name is whole";
}

TEST_F(SessionsTest, ShowsAUserNoOthersSessions) {
  Sessions::Entry* annas = *add(kAnna, "agent");
  annas->id = "aaaaaaaaaaaaaaaa";
  ASSERT_TRUE(add(kBert, "agent"));
  const Viewer bert{.uid = kBert};
  EXPECT_NE(sessions_.find(bert, "agent"), annas);
  EXPECT_EQ(sessions_.find(bert, annas->id).error().status, 404);
  EXPECT_EQ(sessions_.list(bert).size(), 1U);
  EXPECT_EQ(sessions_.list(kRoot).size(), 2U);
  EXPECT_EQ(sessions_.find(kRoot, "agent").error().status, 400) << "whose?";
  EXPECT_EQ(sessions_.find(kRoot, annas->id), annas);
  EXPECT_EQ(sessions_.find({.uid = kAnna, .sees_all = true}, "agent"), annas) << "an operator's own first";
}

TEST_F(SessionsTest, HasLimits) {
  for (std::size_t i = 0; i < kMaxSessionsPerUser; ++i) ASSERT_TRUE(add(kAnna, "s" + std::to_string(i)));
  const auto more = add(kAnna, "more");
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().reason, Reason::TooMany);
  EXPECT_TRUE(add(kBert, "more")) << "another's are another's";
}

TEST_F(SessionsTest, ForgetsANewOneThatCannotStart) {
  Sessions::Entry* entry = *add(kAnna, "agent");
  ASSERT_TRUE(sessions_.start(*entry, follower()));
  ASSERT_EQ(told_.size(), 1U);
  EXPECT_NE(told_[0], "ok");
  EXPECT_TRUE(sessions_.list(kRoot).empty());
  EXPECT_EQ(sessions_.running(), 0U);
}

TEST_F(SessionsTest, IsDoneAtOnceWithWhatHasEnded) {
  sessions_.stop(**add(kAnna, "agent"), follower());
  EXPECT_EQ(told_, std::vector<std::string>{"ok"});
  sessions_.destroy(**sessions_.find({.uid = kAnna}, "agent"), follower());
  EXPECT_EQ(told_.size(), 2U);
  EXPECT_TRUE(sessions_.list(kRoot).empty());
}

TEST_F(SessionsTest, StartsNoneWhileTheDaemonEnds) {
  Sessions::Entry* entry = *add(kAnna, "agent");
  bool ended = false;
  sessions_.end_all([&] { ended = true; });
  EXPECT_TRUE(ended) << "none ran";
  EXPECT_FALSE(add(kAnna, "late"));
  EXPECT_FALSE(sessions_.start(*entry, follower()));
  EXPECT_TRUE(told_.empty());
}

}  // namespace
}  // namespace sallyport::control
