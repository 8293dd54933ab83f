#include "session/grant_change.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>

namespace sallyport::session {
namespace {

GrantPlan plan() {
  GrantPlan plan;
  auto pattern = *policy::RepoPattern::parse("forge.test/acme/widget", policy::HostKind::Generic);
  plan.grant.hosts[pattern.host()];
  plan.grant.git.push_back({std::move(pattern), policy::Access::Fetch, "forge", {"sallyport.toml", 3}});
  plan.credentials["forge"].file = "/token";
  return plan;
}
policy::HostName host(std::string_view name) {
  return *policy::HostName::parse(name);
}

TEST(GrantChange, SaysWhichProcessesCannotGoOn) {
  struct Case {
    std::string_view what;
    bool gate, vault;
    std::function<void(GrantPlan&)> change;
  };
  const Case cases[] = {
      {"nothing", false, false, [](GrantPlan&) {}},
      {"another port", false, false,
       [](GrantPlan& p) {
         p.grant.tcp.push_back({host("db.test"), 7, {}});
         p.grant.hosts[host("db.test")].allow_private = true;
       }},
      {"a host", false, false,
       [](GrantPlan& p) { p.grant.allow.push_back({.hosts = {*policy::HostPattern::parse("web.test")}}); }},
      {"another repository", false, true,
       [](GrantPlan& p) {
         auto more = *policy::RepoPattern::parse("forge.test/acme/more", policy::HostKind::Generic);
         p.grant.git.push_back({std::move(more), policy::Access::Fetch, "", {}});
       }},
      {"a rule's place", false, true,
       [](GrantPlan& p) {
         policy::GitRule moved = p.grant.git.front();
         moved.source.line = 4;
         p.grant.git = {moved};
       }},
      {"a denial", false, true,
       [](GrantPlan& p) { p.grant.deny.push_back({.hosts = {*policy::HostPattern::parse("forge.test")}}); }},
      {"the way to the forge", false, true,
       [](GrantPlan& p) { p.grant.hosts[host("forge.test")].allow_private = true; }},
      {"a credential's file", false, true, [](GrantPlan& p) { p.credentials["forge"].file = "/other"; }},
      {"a limit", true, false, [](GrantPlan& p) { p.grant.limits.connections = 7; }},
      {"a timeout", true, true, [](GrantPlan& p) { p.grant.timeouts.idle = std::chrono::seconds(7); }},
      {"a name server", false, true,
       [](GrantPlan& p) { p.grant.resolvers.push_back(*policy::parse_pinned_address("192.0.2.1")); }},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    GrantPlan after = plan();
    c.change(after);
    const GrantChange change = change_between(plan(), after);
    EXPECT_EQ(change.needs_gate, c.gate);
    EXPECT_EQ(change.needs_vault, c.vault);
  }
}

}  // namespace
}  // namespace sallyport::session
