#include "policy/explain.h"

#include <gtest/gtest.h>

#include <optional>
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
           {"https://github.com", "not_git", "GET https://github.com/"},
           {"https://github.com/", "not_git", "GET https://github.com/"},
           {"https://github.com:8443/acme/widget", "port_not_allowed", "fetch from github.com/acme/widget"},
           {"https://gitlab.com/acme/widget", "host_not_allowed", "fetch from gitlab.com/acme/widget"},
           {"https://evil.test/x?y=z", "host_not_allowed", "GET https://evil.test/x?y=z"},
           {"https://github.com/acme/widget/blob/main/a.c", "not_git",
            "GET https://github.com/acme/widget/blob/main/a.c"},
           {"https://github.com/acme", "not_git", "GET https://github.com/acme"},
           {"https://github.com/acme/widget/info/refs", "dumb_http", "github.com/acme/widget/info/refs"},
           {"https://github.com/acme/widget/info/lfs/objects/batch", "lfs_not_granted",
            "github.com/acme/widget/info/lfs/objects/batch"},
           {"https://github.com/acme/w%69dget", "not_git", "GET https://github.com/acme/w%69dget"},
           {"https://127.0.0.1/acme/widget", "ip_literal", "127.0.0.1/acme/widget"},
           {"https://[::1]:443/", "ip_literal", "[::1]:443/"},
           {"https://2130706433/acme/widget", "ip_literal", "2130706433/acme/widget"},
           {"https://localhost/acme/widget", "bad_request", "localhost/acme/widget"},
           {"http://github.com/acme/widget", "plain_http", "GET http://github.com/acme/widget"},
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
            "  rule: sallyport.toml:13: [[git]] github.com/upstream/* (fetch, anonymous)\n");
  EXPECT_EQ(explain_push(example_grant(), "github.com/acme/widget").text(),
            "allowed: push to github.com/acme/widget\n"
            "  rule: sallyport.toml:3: [[git]] github.com/acme/widget (push, credential \"github\")\n");
}

TEST(Explain, SaysWhichRuleCameClosestAndWhatToAdd) {
  EXPECT_EQ(explain_url(example_grant(), "https://github.com/acme/wigdet").text(),
            "refused: fetch from github.com/acme/wigdet (repo_not_granted)\n"
            "  The policy does not grant this repository.\n"
            "  closest rule: sallyport.toml:3: [[git]] github.com/acme/widget (push, credential \"github\")\n"
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
            "  closest rule: sallyport.toml:3: [[git]] github.com/acme/widget (push, credential \"github\")\n"
            "  This was read as a git repository; --method GET asks for the page.\n"
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
            "  rule: sallyport.toml:8: [[git]] github.com/acme/docs (fetch, credential \"github\")\n"
            "  Change access to \"push\" at sallyport.toml:8.\n");
  const Explanation wildcard = explain_push(example_grant(), "github.com/upstream/lib");
  EXPECT_EQ(wildcard.rule->source, "sallyport.toml:13");
  EXPECT_EQ(wildcard.add, "[[git]]\nrepo = \"github.com/upstream/lib\"\naccess = \"push\"");
}

TEST(Explain, PointsFromSshToHttps) {
  const Explanation granted = explain_url(example_grant(), "git@github.com:acme/widget.git");
  EXPECT_EQ(granted.sentence, "SSH leaves the sandbox by a [[tcp]] rule only; git goes over https://.");
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
  EXPECT_EQ(explain_url(example_grant(), "https://github.com:22/acme/widget").advice,
            "git goes to port 443 of a host only; use the URL without a port.");
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

// One of everything beside git.
Grant egress_grant() {
  Grant grant = example_grant();
  const auto allow = [&](const char* host, int line) {
    AllowRule rule;
    rule.hosts = {*HostPattern::parse(host)};
    rule.source = {"sallyport.toml", line};
    return rule;
  };
  AllowRule api = allow("api.test", 20);
  api.methods = {Method::Get, Method::Post};
  api.paths = {*PathPattern::parse("/v1/**"), *PathPattern::parse("/status")};
  grant.allow.push_back(api);
  AllowRule mirror = allow("mirror.test", 25);
  mirror.hosts.push_back(*HostPattern::parse("*.mirror.test"));
  mirror.ports = {kHttpPort, 8443};
  grant.allow.push_back(mirror);
  AllowRule pinned = allow("pin.test", 30);
  pinned.tls = TlsMode::Splice;
  pinned.methods = Methods::all();
  grant.allow.push_back(pinned);
  AllowRule live = allow("live.test", 35);
  live.websocket = true;
  grant.allow.push_back(live);
  AllowRule pages = allow("github.com", 40);
  pages.paths = {*PathPattern::parse("/acme/*/releases/**"), *PathPattern::parse("/about/us")};
  grant.allow.push_back(pages);
  DenyRule denied;
  denied.hosts = {*HostPattern::parse("api.test")};
  denied.methods = {Method::Post};
  denied.paths = {*PathPattern::parse("/v1/admin/**")};
  denied.source = {"sallyport.toml", 50};
  grant.deny.push_back(denied);
  denied = {};
  denied.hosts = {*HostPattern::parse("*.bad.mirror.test")};
  denied.source = {"sallyport.toml", 55};
  grant.deny.push_back(denied);
  grant.tcp.push_back({*HostName::parse("github.com"), 22, {"sallyport.toml", 60}});
  return grant;
}

TEST(Explain, JudgesWhateverIsAsked) {
  struct Case {
    const char* url;
    const char* code;
    const char* asked;
    int line;  // of the rule that decided, or 0
    std::optional<Method> method = std::nullopt;
  };
  const Grant grant = egress_grant();
  for (const Case& c : std::vector<Case>{
           {"https://api.test/v1/models", "none", "GET https://api.test/v1/models", 20},
           {"https://user:pw@API.test:443/v1/a/b#part", "none", "GET https://api.test/v1/a/b", 20},
           {"api.test/v1/x", "none", "GET https://api.test/v1/x", 20},
           {"https://api.test/v1/x", "none", "POST https://api.test/v1/x", 20, Method::Post},
           {"https://api.test/v1/x", "method_not_granted", "PUT https://api.test/v1/x", 0, Method::Put},
           {"https://api.test/v2", "path_not_allowed", "GET https://api.test/v2", 0},
           {"https://api.test", "path_not_allowed", "GET https://api.test/", 0},
           {"https://api.test/v1/Admin/x", "none", "GET https://api.test/v1/Admin/x", 20},
           {"https://api.test/v1/ADMIN/x", "denied_by_rule", "POST https://api.test/v1/ADMIN/x", 50,
            Method::Post},
           {"https://api.test:8443/v1/x", "port_not_allowed", "GET https://api.test:8443/v1/x", 0},
           {"http://api.test/v1/x", "plain_http", "GET http://api.test/v1/x", 0},
           {"https://api.test/v1/../x", "bad_request", "api.test/v1/../x", 0},
           {"https://api.test/v1//x", "bad_request", "api.test/v1//x", 0},
           {"https://api.test/acme/widget/info/refs?service=git-upload-pack", "repo_not_granted",
            "fetch from api.test/acme/widget", 0},
           {"https://api.test/info/refs", "repo_not_granted", "fetch from api.test/info/refs", 0},
           {"https://api.test/v1/info/refs?service=git-upload-pack", "repo_not_granted",
            "api.test/v1/info/refs?service=git-upload-pack", 0},
           {"http://mirror.test/debian", "none", "GET http://mirror.test/debian", 25},
           {"http://a.mirror.test", "none", "GET http://a.mirror.test/", 25},
           {"http://mirror.test:8443/x", "port_not_allowed", "GET http://mirror.test:8443/x", 0},
           {"https://mirror.test:80/x", "port_not_allowed", "GET https://mirror.test:80/x", 0},
           {"https://a.bad.mirror.test:8443/", "denied_by_rule", "GET https://a.bad.mirror.test:8443/", 55},
           {"mirror.test", "port_not_allowed", "the host mirror.test", 0},
           {"mirror.test:8443", "none", "a connection to mirror.test:8443", 0},
           {"pin.test", "none", "the host pin.test", 30},
           {"evil.test:25", "host_not_allowed", "a connection to evil.test:25", 0},
           {"wss://live.test/feed", "none", "WebSocket at https://live.test/feed", 35},
           {"wss://api.test/v1/x", "method_not_granted", "WebSocket at https://api.test/v1/x", 0},
           {"ws://mirror.test/x", "method_not_granted", "WebSocket at http://mirror.test/x", 0},
           // A host with rules of both kinds.
           {"https://github.com/acme/widget", "none", "fetch from github.com/acme/widget", 3},
           {"https://github.com/about/us", "none", "GET https://github.com/about/us", 40},
           {"https://github.com/acme/widget/releases/1", "none",
            "GET https://github.com/acme/widget/releases/1", 40},
           {"https://github.com/acme/widget", "path_not_allowed", "GET https://github.com/acme/widget", 0,
            Method::Get},
           {"ssh://git@github.com/acme/widget", "none", "a connection to github.com:22", 60},
           {"tcp://github.com:22", "none", "a connection to github.com:22", 60},
           {"TCP://GitHub.com:22", "none", "a connection to github.com:22", 60},
           {"tcp://github.com:23", "port_not_allowed", "a connection to github.com:23", 0},
           {"tcp://pin.test:443", "none", "the host pin.test", 30},
           {"tcp://a.bad.mirror.test:8443", "denied_by_rule", "a connection to a.bad.mirror.test:8443", 55},
           {"tcp://127.0.0.1:22", "ip_literal", "127.0.0.1:22", 0},
           {"tcp://github.com", "bad_request", "tcp://github.com", 0},
           {"tcp://github.com:22/", "bad_request", "tcp://github.com:22/", 0},
           {"tcp://github.com:22", "bad_request", "tcp://github.com:22", 0, Method::Get},
           {"git@github.com:acme/widget.git", "none", "a connection to github.com:22", 60},
       }) {
    const Explanation explanation = explain_url(grant, c.url, c.method);
    EXPECT_EQ(code(explanation.reason), c.code) << c.url << "\n" << explanation.text();
    EXPECT_EQ(explanation.asked, c.asked) << c.url;
    EXPECT_EQ(explanation.rule ? explanation.rule->source : "",
              c.line == 0 ? "" : "sallyport.toml:" + std::to_string(c.line))
        << c.url;
    EXPECT_EQ(explanation.allowed, explanation.reason == Reason::None) << c.url;
  }
}

TEST(Explain, ShowsRulesOfEveryKind) {
  EXPECT_EQ(explain_url(egress_grant(), "https://api.test/v2").text(),
            "refused: GET https://api.test/v2 (path_not_allowed)\n"
            "  The policy does not allow this path.\n"
            "  closest rule: sallyport.toml:20: [[allow]] api.test (GET, POST; /v1/**, /status)\n"
            "  To allow it, add to the policy:\n"
            "\n"
            "    [[allow]]\n"
            "    host = \"api.test\"\n"
            "    methods = [\"GET\"]\n"
            "    paths = [\"/v2\"]\n"
            "\n");
  EXPECT_EQ(explain_url(egress_grant(), "https://api.test/v1/admin/x", Method::Post).text(),
            "refused: POST https://api.test/v1/admin/x (denied_by_rule)\n"
            "  A deny rule of the policy forbids this.\n"
            "  rule: sallyport.toml:50: [[deny]] api.test (POST; /v1/admin/**)\n"
            "  Only a change of that rule allows it.\n");
  EXPECT_EQ(explain_url(egress_grant(), "pin.test").text(),
            "allowed: the host pin.test\n"
            "  TLS is passed on as it is: nothing but the host is judged.\n"
            "  rule: sallyport.toml:30: [[allow]] pin.test (spliced)\n");
  EXPECT_EQ(explain_url(egress_grant(), "github.com:22").text(),
            "allowed: a connection to github.com:22\n"
            "  Whatever is spoken there is passed on.\n"
            "  rule: sallyport.toml:60: [[tcp]] github.com:22\n");
  EXPECT_EQ(explain_url(egress_grant(), "tcp://github.com:23").text(),
            "refused: a connection to github.com:23 (port_not_allowed)\n"
            "  The policy does not allow this port.\n"
            "  closest rule: sallyport.toml:60: [[tcp]] github.com:22\n"
            "  To allow it, add to the policy:\n"
            "\n"
            "    [[tcp]]\n"
            "    host = \"github.com\"\n"
            "    port = 23\n"
            "\n");
  EXPECT_EQ(explain_url(egress_grant(), "http://a.mirror.test/x", Method::Put).closest->str(),
            "sallyport.toml:25: [[allow]] *.mirror.test and 1 more (GET, HEAD; ports 80, 8443)");
  // A slip of the pen in the host.
  EXPECT_EQ(explain_url(egress_grant(), "https://apl.test/v1/x", Method::Get).closest->source,
            "sallyport.toml:20");
}

TEST(Explain, EscapesWhatATerminalCouldObey) {
  const std::string text = explain_url(example_grant(), "https://github.com/a\x1b[31m/b").text();
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace sallyport::policy
