#include "policy/explain.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace sallyport::policy {
namespace {

Grant example_grant() {
  Grant grant;
  const auto add = [&](const char* repo, Access access, const char* credential, int line) {
    RepoPattern pattern = *RepoPattern::parse(repo, well_known_kind(*host_of_repo(repo)));
    grant.hosts[pattern.host()].kind = well_known_kind(pattern.host());
    grant.git.push_back({std::move(pattern), access, credential, {"sallyport.toml", line}});
  };
  add("github.com/acme/widget", Access::Push, "github", 3);
  add("github.com/acme/docs", Access::Fetch, "github", 8);
  add("github.com/upstream/*", Access::Fetch, "", 13);
  return grant;
}

TEST(Explain, JudgesEveryFormOfAUrl) {
  struct Case {
    const char* url;
    const char* code;
    const char* asked;
  };
  const Grant grant = example_grant();
  for (const Case& c : std::vector<Case>{
           {"https://github.com/acme/widget", "none", "fetch from github.com/acme/widget"},
           {"https://github.com/acme/widget.git", "none", "fetch from github.com/acme/widget"},
           {"https://github.com/acme/widget/", "none", "fetch from github.com/acme/widget"},
           {"HTTPS://GitHub.com:443/Acme/Widget", "none", "fetch from github.com/Acme/Widget"},
           {"github.com/acme/widget", "none", "fetch from github.com/acme/widget"},
           {"https://github.com/acme/docs/info/refs?service=git-upload-pack", "none",
            "fetch from github.com/acme/docs"},
           {"https://github.com/acme/docs/info/refs?service=git-receive-pack", "push_not_granted",
            "push to github.com/acme/docs"},
           {"https://github.com/acme/docs/git-receive-pack", "push_not_granted",
            "push to github.com/acme/docs"},
           {"https://github.com/acme/widget/git-receive-pack", "none", "push to github.com/acme/widget"},
           {"https://github.com/acme/other", "repo_not_granted", "fetch from github.com/acme/other"},
           {"https://github.com", "not_git", "the host github.com"},
           {"https://github.com/", "not_git", "the host github.com"},
           {"https://github.com:8443/acme/widget", "port_not_allowed", "fetch from github.com/acme/widget"},
           {"https://gitlab.com/acme/widget", "host_not_allowed", "fetch from gitlab.com/acme/widget"},
           {"https://evil.test/x?y=z", "host_not_allowed", "evil.test/x?y=z"},
           {"https://github.com/acme/widget/blob/main/a.c", "not_git",
            "github.com/acme/widget/blob/main/a.c"},
           {"https://github.com/acme", "not_git", "github.com/acme"},
           {"https://github.com/acme/widget/info/refs", "dumb_http", "github.com/acme/widget/info/refs"},
           {"https://github.com/acme/widget/info/lfs/objects/batch", "lfs_not_granted",
            "github.com/acme/widget/info/lfs/objects/batch"},
           {"https://github.com/acme/w%69dget", "bad_request", "github.com/acme/w%69dget"},
           {"https://127.0.0.1/acme/widget", "ip_literal", "127.0.0.1/acme/widget"},
           {"https://[::1]:443/", "ip_literal", "[::1]:443/"},
           {"https://2130706433/acme/widget", "ip_literal", "2130706433/acme/widget"},
           {"https://localhost/acme/widget", "bad_request", "localhost/acme/widget"},
           {"http://github.com/acme/widget", "plain_http", "fetch from github.com/acme/widget"},
           {"ssh://git@github.com/acme/widget", "port_not_allowed", "fetch from github.com/acme/widget"},
           {"ssh://git@github.com:22/acme/widget.git", "port_not_allowed",
            "fetch from github.com/acme/widget"},
           {"git@github.com:acme/widget.git", "port_not_allowed", "fetch from github.com/acme/widget"},
           {"git://github.com/acme/widget", "port_not_allowed", "fetch from github.com/acme/widget"},
           {"ftp://github.com/acme/widget", "bad_request", "ftp://..."},
       }) {
    const Explanation explanation = explain_url(grant, c.url);
    EXPECT_EQ(code(explanation.reason), c.code) << c.url << "\n" << explanation.text();
    EXPECT_EQ(explanation.asked, c.asked) << c.url;
    EXPECT_EQ(explanation.allowed, explanation.reason == Reason::None) << c.url;
  }
}

TEST(Explain, SaysByWhichRuleItIsAllowed) {
  EXPECT_EQ(explain_url(example_grant(), "https://github.com/upstream/lib").text(),
            "allowed: fetch from github.com/upstream/lib\n"
            "  rule: sallyport.toml:13: github.com/upstream/* (fetch, anonymous)\n");
  EXPECT_EQ(explain_push(example_grant(), "github.com/acme/widget").text(),
            "allowed: push to github.com/acme/widget\n"
            "  rule: sallyport.toml:3: github.com/acme/widget (push, credential \"github\")\n");
}

TEST(Explain, SaysWhichRuleCameClosestAndWhatToAdd) {
  EXPECT_EQ(explain_url(example_grant(), "https://github.com/acme/wigdet").text(),
            "refused: fetch from github.com/acme/wigdet (repo_not_granted)\n"
            "  The policy does not grant this repository.\n"
            "  closest rule: sallyport.toml:3: github.com/acme/widget (push, credential \"github\")\n"
            "  To allow it, add to the policy:\n"
            "\n"
            "    [[git]]\n"
            "    repo = \"github.com/acme/wigdet\"\n"
            "    access = \"fetch\"\n"
            "    credential = \"github\"\n"
            "\n");
  EXPECT_EQ(explain_url(example_grant(), "https://gihtub.com/acme/widget").text(),
            "refused: fetch from gihtub.com/acme/widget (host_not_allowed)\n"
            "  The policy does not allow this host.\n"
            "  closest rule: sallyport.toml:3: github.com/acme/widget (push, credential \"github\")\n"
            "  To allow it, add to the policy:\n"
            "\n"
            "    [[git]]\n"
            "    repo = \"gihtub.com/acme/widget\"\n"
            "    access = \"fetch\"\n"
            "\n");
}

TEST(Explain, SaysWhatToChangeForAPush) {
  // The rule is exact: another one for the same repository would be a duplicate.
  EXPECT_EQ(explain_push(example_grant(), "github.com/acme/docs").text(),
            "refused: push to github.com/acme/docs (push_not_granted)\n"
            "  The policy grants fetching from this repository, not pushing.\n"
            "  rule: sallyport.toml:8: github.com/acme/docs (fetch, credential \"github\")\n"
            "  Change access to \"push\" at sallyport.toml:8.\n");
  const Explanation wildcard = explain_push(example_grant(), "github.com/upstream/lib");
  EXPECT_EQ(wildcard.rule->source, "sallyport.toml:13");
  EXPECT_EQ(wildcard.add, "[[git]]\nrepo = \"github.com/upstream/lib\"\naccess = \"push\"");
}

TEST(Explain, PointsFromSshToHttps) {
  const Explanation granted = explain_url(example_grant(), "git@github.com:acme/widget.git");
  EXPECT_EQ(granted.sentence, "SSH does not leave the sandbox; git goes over https:// only.");
  EXPECT_EQ(granted.advice, "Use https://github.com/acme/widget.git instead, which is allowed.");
  const Explanation other = explain_push(example_grant(), "ssh://git@github.com:2222/acme/docs");
  EXPECT_EQ(
      other.advice,
      "Use https://github.com/acme/docs instead, which is refused as well: The policy grants fetching from "
      "this repository, not pushing.");
}

TEST(Explain, NeverShowsAUrlsUserNameOrPassword) {
  for (const char* url :
       {"https://user:hunter2@github.com/acme/widget", "https://hunter2@github.com/acme/nothing",
        "http://hunter2@github.com/acme/widget", "ssh://hunter2@github.com/acme/widget",
        "hunter2@github.com:acme/widget", "ftp://hunter2@github.com/acme/widget",
        "https://a:hunter2@127.0.0.1/x", "https://a:hunter2@bad_host/x"}) {
    EXPECT_EQ(explain_url(example_grant(), url).text().find("hunter2"), std::string::npos) << url;
  }
  EXPECT_TRUE(explain_url(example_grant(), "https://user:hunter2@github.com/acme/widget").allowed);
}

TEST(Explain, SaysWhereNoRuleHelps) {
  const Explanation inside = explain_url(example_grant(), "https://metadata.google.internal/a/b");
  EXPECT_EQ(inside.add, "");
  EXPECT_EQ(
      inside.advice,
      "No rule can name this host: its name belongs to the inside of a cloud or of a container engine.");
  EXPECT_EQ(explain_url(example_grant(), "https://github.com:22/").advice,
            "Only port 443 of a host is open; use the URL without a port.");
  EXPECT_NE(explain_url(example_grant(), "https://10.0.0.1/").advice.find("by its name"), std::string::npos);
}

TEST(Explain, OfAnEmptyPolicyOffersTheFirstRule) {
  EXPECT_EQ(explain_url(Grant{}, "https://github.com/acme/widget").text(),
            "refused: fetch from github.com/acme/widget (policy_empty)\n"
            "  The policy allows nothing.\n"
            "  To allow it, add to the policy:\n"
            "\n"
            "    [[git]]\n"
            "    repo = \"github.com/acme/widget\"\n"
            "    access = \"fetch\"\n"
            "\n");
}

TEST(Explain, EscapesWhatATerminalCouldObey) {
  const std::string text = explain_url(example_grant(), "https://github.com/a\x1b[31m/b").text();
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace sallyport::policy
