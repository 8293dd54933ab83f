#include "session/grant_diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace sallyport::session {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

policy::GitRule git(std::string_view repo, int line) {
  auto pattern = *policy::RepoPattern::parse(repo, policy::HostKind::Generic);
  return {std::move(pattern), policy::Access::Fetch, "forge", {"sallyport.toml", line}};
}

TEST(GrantDiff, SaysWhichRulesCameAndWent) {
  GrantPlan before;
  before.grant.git = {git("forge.test/acme/widget", 3), git("forge.test/acme/old", 8)};
  GrantPlan after;
  after.grant.git = {git("forge.test/acme/widget", 9)};
  after.grant.tcp.push_back({*policy::HostName::parse("db.test"), 5432, {"sallyport.toml", 3}});
  EXPECT_THAT(
      changes_in_words(before, after),
      ElementsAre("- [[git]] forge.test/acme/old (fetch, credential \"forge\")", "+ [[tcp]] db.test:5432"));
}

TEST(GrantDiff, SaysWhatElseIsAnother) {
  GrantPlan after;
  after.credentials["forge"].file = "/token";
  after.grant.hosts[*policy::HostName::parse("forge.test")].allow_private = true;
  after.grant.resolvers.push_back(*policy::parse_pinned_address("192.0.2.1"));
  after.grant.limits.connections = 7;
  after.grant.timeouts.idle = std::chrono::seconds(7);
  EXPECT_THAT(changes_in_words({}, after), ElementsAre("the credentials' places", "how hosts are reached",
                                                       "the name servers", "the limits", "the timeouts"));
}

TEST(GrantDiff, IsNeverSilentAndNeverLong) {
  GrantPlan before;
  GrantPlan after;
  before.grant.git = {git("forge.test/acme/widget", 3)};
  after.grant.git = {git("forge.test/acme/widget", 4)};
  EXPECT_THAT(changes_in_words(before, after), ElementsAre("the places or particulars of rules"));
  for (int i = 0; i < 1000; ++i) {
    after.grant.git.push_back(git("forge.test/acme/widget" + std::to_string(i), i));
  }
  const auto changes = changes_in_words(before, after);
  EXPECT_THAT(changes, SizeIs(kMaxChangeLines + 1));
  EXPECT_EQ(changes.back(), "... and 990 more rules");
}

}  // namespace
}  // namespace sallyport::session
