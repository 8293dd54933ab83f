#include "policy/approval.h"

#include <gtest/gtest.h>

#include <vector>

namespace sallyport::policy {
namespace {

RepoPattern pattern(const char* text, HostKind kind) {
  return *RepoPattern::parse(text, kind);
}

struct Case {
  const char* approved;
  Access approved_access;
  const char* rule;
  Access rule_access;
  const char* credential;  // of the rule; the approval's is "github"
  bool covered;
  HostKind kind = HostKind::GitHub;
};

TEST(Approval, CoversNoRuleThatReachesBeyondIt) {
  for (const Case& c : std::vector<Case>{
           {"github.com/acme/*", Access::Push, "github.com/acme/widget", Access::Push, "github", true},
           {"github.com/acme/*", Access::Push, "github.com/Acme/Widget", Access::Push, "github", true},
           {"github.com/acme/*", Access::Push, "github.com/acme/widget", Access::Fetch, "github", true},
           {"github.com/acme/*", Access::Push, "github.com/acme/*", Access::Push, "github", true},
           {"github.com/acme/*", Access::Push, "github.com/acme/agent-*", Access::Push, "github", true},
           {"github.com/acme/a*z", Access::Push, "github.com/acme/a*b*z", Access::Push, "github", true},
           {"github.com/acme/*", Access::Fetch, "github.com/acme/widget", Access::Push, "github", false},
           {"github.com/acme/*", Access::Push, "github.com/acme/widget", Access::Push, "other", false},
           {"github.com/acme/*", Access::Push, "github.com/acme/widget", Access::Push, "", false},
           {"github.com/acme/*", Access::Push, "github.com/*/widget", Access::Push, "github", false},
           {"github.com/acme/*", Access::Push, "github.com/*/*", Access::Push, "github", false},
           {"github.com/acme/*", Access::Push, "github.com/acme-evil/widget", Access::Push, "github", false},
           {"github.com/acme/*", Access::Push, "gitlab.com/acme/widget", Access::Push, "github", false},
           {"github.com/acme/widget", Access::Push, "github.com/acme/*", Access::Push, "github", false},
           {"github.com/acme/a*z", Access::Push, "github.com/acme/a*", Access::Push, "github", false},
           {"github.com/acme/a*z", Access::Push, "github.com/acme/*z", Access::Push, "github", false},
           {"git.test/acme/*", Access::Push, "git.test/Acme/x", Access::Push, "github", false,
            HostKind::Generic},
           {"gitlab.com/acme/*", Access::Push, "gitlab.com/acme/team/x", Access::Push, "github", false,
            HostKind::GitLab},
       }) {
    const GitRule rule{pattern(c.rule, c.kind), c.rule_access, c.credential, {}};
    const Approval approval{pattern(c.approved, c.kind), c.approved_access, "github"};
    EXPECT_EQ(approves(approval, rule), c.covered) << c.approved << " over " << c.rule;
  }
}

}  // namespace
}  // namespace sallyport::policy
