#include "policy/decide.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace sallyport::policy {
namespace {

struct RuleText {
  const char* repo;
  Access access;
};

Grant grant_of(const std::vector<RuleText>& rules) {
  Grant grant;
  int line = 1;
  for (const RuleText& text : rules) {
    RepoPattern pattern = *RepoPattern::parse(text.repo, well_known_kind(*host_of_repo(text.repo)));
    grant.hosts[pattern.host()].kind = well_known_kind(pattern.host());
    grant.git.push_back({std::move(pattern), text.access, "", {"sallyport.toml", line++}});
  }
  return grant;
}

HostName host(std::string_view text) {
  return *HostName::parse(text);
}

Operation git(std::string_view repo, GitService service, std::uint16_t port = kHttpsPort) {
  RepoId id = *parse_repo(repo, well_known_kind(*host_of_repo(repo)));
  return UseGit{GitRoute{std::move(id), service, GitEndpoint::Advertisement, false}, port};
}

constexpr GitService kFetch = GitService::UploadPack;
constexpr GitService kPush = GitService::ReceivePack;

TEST(Decide, DeniesByDefault) {
  EXPECT_FALSE(Decision{}.allowed());
  for (const Operation& operation :
       std::vector<Operation>{ResolveName{host("github.com")}, Connect{host("github.com"), kHttpsPort},
                              git("github.com/acme/widget", kFetch)}) {
    const Decision decision = decide(Grant{}, operation);
    EXPECT_FALSE(decision.allowed());
    EXPECT_EQ(code(decision.reason), "policy_empty");
  }
}

TEST(Decide, AsksHostPortRepositoryAndServiceInThisOrder) {
  const Grant grant =
      grant_of({{"github.com/acme/widget", Access::Fetch}, {"github.com/acme/tool", Access::Push}});
  struct Case {
    Operation operation;
    const char* code;
  };
  for (const Case& c : std::vector<Case>{
           {ResolveName{host("github.com")}, "none"},
           {ResolveName{host("api.github.com")}, "host_not_allowed"},
           {ResolveName{host("github.com.evil.test")}, "host_not_allowed"},
           {Connect{host("github.com"), kHttpsPort}, "none"},
           {Connect{host("github.com"), 22}, "port_not_allowed"},
           {Connect{host("github.com"), 80}, "plain_http"},
           {Connect{host("evil.test"), 22}, "host_not_allowed"},
           {git("github.com/acme/widget", kFetch), "none"},
           {git("github.com/Acme/Widget.git", kFetch), "none"},
           {git("github.com/acme/widget", kPush), "push_not_granted"},
           {git("github.com/acme/widget", kFetch, 8443), "port_not_allowed"},
           {git("github.com/acme/tool", kFetch), "none"},
           {git("github.com/acme/tool", kPush), "none"},
           {git("github.com/acme/other", kFetch), "repo_not_granted"},
           {git("github.com/acme/other", kPush), "repo_not_granted"},
           {git("gitlab.com/acme/widget", kFetch), "host_not_allowed"},
       }) {
    const Decision decision = decide(grant, c.operation);
    EXPECT_EQ(code(decision.reason), c.code);
    EXPECT_EQ(decision.allowed(), decision.reason == Reason::None);
  }
}

TEST(Decide, LetsTheRuleWithTheFewestWildcardsAndThenTheEarliestDecide) {
  const Grant grant = grant_of({{"github.com/*/*", Access::Push},
                                {"github.com/acme/*", Access::Fetch},
                                {"github.com/*/widget", Access::Push},
                                {"github.com/acme/tool", Access::Push}});
  EXPECT_EQ(decide(grant, git("github.com/other/thing", kPush)).rule->index, 0U);
  // A narrower rule that grants less wins over a wider one that grants more.
  const Decision narrower = decide(grant, git("github.com/acme/thing", kPush));
  EXPECT_EQ(code(narrower.reason), "push_not_granted");
  EXPECT_EQ(narrower.rule->index, 1U);
  // Two with one wildcard each: the earlier.
  EXPECT_EQ(decide(grant, git("github.com/acme/widget", kFetch)).rule->index, 1U);
  EXPECT_EQ(decide(grant, git("github.com/other/widget", kFetch)).rule->index, 2U);
  EXPECT_EQ(decide(grant, git("github.com/acme/tool", kPush)).rule->index, 3U);
}

TEST(Decide, NamesTheClosestRuleOfTheSameHost) {
  const Grant grant = grant_of({{"gitlab.com/acme/widget", Access::Fetch},
                                {"github.com/other/tool", Access::Fetch},
                                {"github.com/acme/tool", Access::Fetch}});
  EXPECT_EQ(decide(grant, git("github.com/acme/widget", kFetch)).closest->index, 2U);
  EXPECT_EQ(decide(grant, git("github.com/nobody/widget", kFetch)).closest->index, 1U);
  EXPECT_EQ(decide(grant, git("bitbucket.org/acme/widget", kFetch)).closest, std::nullopt);
  EXPECT_EQ(decide(grant, git("github.com/acme/tool", kPush)).closest, std::nullopt);
}

TEST(LineToAdd, IsARuleThatAllowsTheOperation) {
  EXPECT_EQ(line_to_add(git("github.com/acme/widget", kPush)),
            "[[git]]\nrepo = \"github.com/acme/widget\"\naccess = \"push\"");
  EXPECT_EQ(line_to_add(git("github.com/acme/widget", kFetch), "github"),
            "[[git]]\nrepo = \"github.com/acme/widget\"\naccess = \"fetch\"\ncredential = \"github\"");
  EXPECT_EQ(line_to_add(Connect{host("github.com"), kHttpsPort}),
            "[[git]]\nrepo = \"github.com/OWNER/NAME\"\naccess = \"fetch\"");
  EXPECT_EQ(line_to_add(ResolveName{host("github.com")}),
            "[[git]]\nrepo = \"github.com/OWNER/NAME\"\naccess = \"fetch\"");
}

TEST(LineToAdd, IsEmptyWhereNoRuleHelps) {
  EXPECT_EQ(line_to_add(Connect{host("x.local"), 22}), "");
  EXPECT_EQ(line_to_add(git("github.com/acme/widget", kFetch, 8443)), "");
  EXPECT_EQ(line_to_add(ResolveName{host("metadata.google.internal")}), "");
  EXPECT_EQ(line_to_add(git("git.localhost/acme/widget", kFetch)), "");
}

TEST(Grant, KnowsTheKindOfEveryHost) {
  Grant grant = grant_of({{"github.com/acme/widget", Access::Fetch}});
  grant.hosts[host("forge.test")].kind = HostKind::GitLab;
  EXPECT_EQ(grant.kind_of(host("github.com")), HostKind::GitHub);
  EXPECT_EQ(grant.kind_of(host("forge.test")), HostKind::GitLab);
  EXPECT_EQ(grant.kind_of(host("codeberg.org")), HostKind::Gitea);
  EXPECT_EQ(grant.find_host(host("codeberg.org")), nullptr);
  EXPECT_EQ(grant.git[0].source.str(), "sallyport.toml:1");
  EXPECT_EQ((RuleSource{"--git", 0}.str()), "--git");
}

}  // namespace
}  // namespace sallyport::policy
