#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "policy/decide.h"

namespace sallyport::policy {
namespace {

HostName host(std::string_view text) {
  return *HostName::parse(text);
}

AllowRule allow(const std::vector<const char*>& hosts) {
  AllowRule rule;
  for (const char* text : hosts) rule.hosts.push_back(*HostPattern::parse(text));
  return rule;
}

DenyRule deny(const std::vector<const char*>& hosts, const std::vector<const char*>& paths = {}) {
  DenyRule rule;
  for (const char* text : hosts) rule.hosts.push_back(*HostPattern::parse(text));
  for (const char* text : paths) rule.paths.push_back(*PathPattern::parse(text));
  return rule;
}

UseHttp request(std::string_view name, std::string_view target, Method method = Method::Get,
                std::uint16_t port = kHttpsPort) {
  return {port == kHttpPort ? Scheme::Http : Scheme::Https, host(name), port, method,
          *HttpPath::parse(target)};
}

GitRule git(std::string_view repo) {
  return {*RepoPattern::parse(repo, HostKind::Generic), Access::Fetch, "", {}};
}

// One of everything.
Grant sample() {
  Grant grant;
  grant.git.push_back(git("forge.test/acme/*"));
  AllowRule api = allow({"api.ok.test"});
  api.methods = {Method::Get, Method::Post};
  api.paths = {*PathPattern::parse("/v1/**"), *PathPattern::parse("/status")};
  grant.allow.push_back(api);
  grant.allow.push_back(allow({"*.wild.test"}));
  AllowRule mirror = allow({"mirror.test", "plain.test"});
  mirror.ports = {kHttpPort};
  grant.allow.push_back(mirror);
  AllowRule pinned = allow({"pin.test", "*.pin.test"});
  pinned.tls = TlsMode::Splice;
  grant.allow.push_back(pinned);
  AllowRule forge = allow({"forge.test"});
  forge.paths = {*PathPattern::parse("/acme/*/releases/**")};
  grant.allow.push_back(forge);
  grant.deny.push_back(deny({"bad.wild.test", "*.bad.wild.test"}));
  grant.deny.push_back(deny({"api.ok.test"}, {"/v1/admin/**"}));
  grant.deny.push_back(deny({"partly.pin.test"}, {"/x"}));
  grant.tcp.push_back({host("db.test"), 5432, {}});
  return grant;
}

TEST(DecideConnect, SaysWhoReadsTheConnection) {
  struct Case {
    const char* host;
    std::uint16_t port;
    const char* code;
    Carriage carriage = Carriage::Inspect;
  };
  const Grant grant = sample();
  for (const Case& c : std::vector<Case>{
           {"api.ok.test", 443, "none"},
           {"api.ok.test", 80, "plain_http"},
           {"api.ok.test", 8443, "port_not_allowed"},
           {"ok.test", 443, "host_not_allowed"},
           {"a.wild.test", 443, "none"},
           {"wild.test", 443, "host_not_allowed"},
           {"bad.wild.test", 443, "denied_by_rule"},
           {"x.y.bad.wild.test", 443, "denied_by_rule"},
           {"mirror.test", 80, "none", Carriage::PlainHttp},
           {"mirror.test", 443, "port_not_allowed"},
           {"pin.test", 443, "none", Carriage::Splice},
           {"x.pin.test", 443, "none", Carriage::Splice},
           {"partly.pin.test", 443, "denied_by_rule"},
           {"forge.test", 443, "none"},
           {"db.test", 5432, "none", Carriage::Raw},
           {"db.test", 443, "port_not_allowed"},
           {"evil.test", 443, "host_not_allowed"},
       }) {
    SCOPED_TRACE(std::string(c.host) + ":" + std::to_string(c.port));
    const Decision decision = decide(grant, Connect{host(c.host), c.port});
    EXPECT_EQ(code(decision.reason), c.code);
    EXPECT_EQ(decision.allowed(), decision.reason == Reason::None);
    if (decision.allowed()) EXPECT_EQ(decision.carriage, c.carriage);
  }
}

TEST(DecideConnect, TakesTheModeOfTheMostSpecificHost) {
  Grant grant;
  grant.allow.push_back(allow({"*.cdn.test"}));
  AllowRule pinned = allow({"pin.cdn.test"});
  pinned.tls = TlsMode::Splice;
  grant.allow.push_back(pinned);
  EXPECT_EQ(decide(grant, Connect{host("pin.cdn.test"), 443}).carriage, Carriage::Splice);
  EXPECT_EQ(decide(grant, Connect{host("x.cdn.test"), 443}).carriage, Carriage::Inspect);
  grant.git.push_back(git("pin.cdn.test/a/b"));
  EXPECT_EQ(decide(grant, Connect{host("pin.cdn.test"), 443}).carriage, Carriage::Inspect);
}

TEST(DecideName, IsAllowedWhereSomePortIs) {
  struct Case {
    const char* host;
    const char* code;
  };
  const Grant grant = sample();
  for (const Case& c : std::vector<Case>{{"api.ok.test", "none"},
                                         {"mirror.test", "none"},
                                         {"db.test", "none"},
                                         {"forge.test", "none"},
                                         {"bad.wild.test", "denied_by_rule"},
                                         {"partly.pin.test", "denied_by_rule"},
                                         {"evil.test", "host_not_allowed"}}) {
    EXPECT_EQ(code(decide(grant, ResolveName{host(c.host)}).reason), c.code) << c.host;
  }
}

TEST(DecideHttp, AsksHostDenyPortPathAndMethod) {
  struct Case {
    UseHttp asked;
    const char* code;
  };
  const Grant grant = sample();
  for (const Case& c : std::vector<Case>{
           {request("api.ok.test", "/v1/models"), "none"},
           {request("api.ok.test", "/v1/models?x=/admin", Method::Post), "none"},
           {request("api.ok.test", "/v1/models", Method::Delete), "method_not_granted"},
           {request("api.ok.test", "/v2"), "path_not_allowed"},
           {request("api.ok.test", "/v1/%6dodels"), "none"},
           {request("api.ok.test", "/v1/a%2fb"), "path_not_allowed"},
           {request("api.ok.test", "/v1/admin/x"), "denied_by_rule"},
           {request("api.ok.test", "/v1/ADMIN"), "denied_by_rule"},
           {request("api.ok.test", "/v1/%61dmin/x"), "denied_by_rule"},
           {request("api.ok.test", "/v1/models", Method::Get, 80), "plain_http"},
           {request("api.ok.test", "/v1/models", Method::Get, 8443), "port_not_allowed"},
           {request("evil.test", "/v1/models"), "host_not_allowed"},
           {request("bad.wild.test", "/"), "denied_by_rule"},
           {request("good.wild.test", "/x"), "none"},
           {request("good.wild.test", "/x", Method::Post), "method_not_granted"},
           {request("mirror.test", "/x", Method::Get, 80), "none"},
           {request("mirror.test", "/x"), "port_not_allowed"},
           {request("forge.test", "/acme/w/releases/1"), "none"},
           {request("forge.test", "/acme/w/settings"), "path_not_allowed"},
           {request("forge.test", "/acme/w/info/refs?service=git-receive-pack"), "repo_not_granted"},
           {request("good.wild.test", "/acme/w/git-receive-pack", Method::Post), "repo_not_granted"},
           {request("db.test", "/", Method::Get), "port_not_allowed"},
       }) {
    SCOPED_TRACE(c.asked.host.str() + c.asked.path.target());
    const Decision decision = decide(grant, c.asked);
    EXPECT_EQ(code(decision.reason), c.code);
    EXPECT_EQ(decision.allowed(), decision.rule.has_value() && decision.reason == Reason::None);
  }
  UseHttp in_clear = request("api.ok.test", "/v1/x", Method::Get, 8080);
  in_clear.scheme = Scheme::Http;
  EXPECT_EQ(decide(grant, in_clear).reason, Reason::PlainHttp);
  in_clear.host = host("mirror.test");
  EXPECT_EQ(decide(grant, in_clear).reason, Reason::PortNotAllowed);
  UseHttp tls = request("mirror.test", "/x", Method::Get, 80);
  tls.scheme = Scheme::Https;
  EXPECT_EQ(decide(grant, tls).reason, Reason::PortNotAllowed);
}

TEST(DecideHttp, SpeaksWhatTheRuleSaysAtAPort) {
  Grant grant;
  AllowRule rule = allow({"old.test"});
  rule.ports = {8080};
  rule.scheme = Scheme::Http;
  grant.allow.push_back(rule);
  EXPECT_EQ(decide(grant, Connect{host("old.test"), 8080}).carriage, Carriage::PlainHttp);
  UseHttp asked = request("old.test", "/x", Method::Get, 8080);
  EXPECT_EQ(decide(grant, asked).reason, Reason::PortNotAllowed);
  asked.scheme = Scheme::Http;
  EXPECT_TRUE(decide(grant, asked).allowed());
  EXPECT_EQ(line_to_add(asked),
            "[[allow]]\nhost = \"old.test\"\nports = [8080]\nscheme = \"http\"\nmethods = [\"GET\"]\npaths = "
            "[\"/x\"]");
}

TEST(DecideHttp, NamesTheRuleAndWhatCameClosest) {
  const Grant grant = sample();
  EXPECT_EQ(decide(grant, request("api.ok.test", "/v1/x")).rule, (RuleRef{RuleRef::Kind::Allow, 0}));
  EXPECT_EQ(decide(grant, request("api.ok.test", "/v1/admin")).rule, (RuleRef{RuleRef::Kind::Deny, 1}));
  EXPECT_EQ(decide(grant, request("api.ok.test", "/v2")).closest, (RuleRef{RuleRef::Kind::Allow, 0}));
}

TEST(DecideHttp, OneRuleMustAllowAllAndTheWidestCapCounts) {
  Grant grant;
  AllowRule read = allow({"api.ok.test"});
  AllowRule post = allow({"*.ok.test"});
  post.methods = {Method::Post, Method::Get};
  post.paths = {*PathPattern::parse("/upload")};
  post.max_body = kDefaultMaxBody * 2;
  grant.allow.push_back(read);
  grant.allow.push_back(post);
  EXPECT_EQ(decide(grant, request("api.ok.test", "/x", Method::Post)).reason, Reason::MethodNotGranted);
  EXPECT_EQ(decide(grant, request("api.ok.test", "/upload", Method::Post)).rule->index, 1U);
  EXPECT_EQ(decide(grant, request("api.ok.test", "/upload")).rule->index, 1U);
  EXPECT_EQ(decide(grant, request("api.ok.test", "/x")).rule->index, 0U);
}

TEST(DecideHttp, OpensAWebSocketOnlyByARuleThatSaysSo) {
  Grant grant;
  grant.allow.push_back(allow({"ws.test", "*.ws.test"}));
  UseHttp asked = request("a.ws.test", "/chat");
  asked.websocket = true;
  EXPECT_EQ(decide(grant, asked).reason, Reason::MethodNotGranted);
  AllowRule rule = allow({"a.ws.test"});
  rule.websocket = true;
  grant.allow.push_back(rule);
  EXPECT_EQ(decide(grant, asked).rule->index, 1U);
}

TEST(DecideGit, IsDeniedByADenyOfTheWholeHostAlone) {
  Grant grant = sample();
  const UseGit fetch{{*parse_repo("forge.test/acme/w", HostKind::Generic), GitService::UploadPack,
                      GitEndpoint::Advertisement, false},
                     kHttpsPort};
  EXPECT_TRUE(decide(grant, fetch).allowed());
  grant.deny.push_back(deny({"forge.test"}, {"/acme/**"}));
  EXPECT_TRUE(decide(grant, fetch).allowed());
  grant.deny.push_back(deny({"forge.test"}));
  EXPECT_EQ(decide(grant, fetch).reason, Reason::DeniedByRule);
}

TEST(LineToAdd, AllowsWhatWasAsked) {
  EXPECT_EQ(line_to_add(request("api.ok.test", "/v1/a%20b/c?x=1", Method::Post)),
            "[[allow]]\nhost = \"api.ok.test\"\nmethods = [\"POST\"]\npaths = [\"/v1/*/c\"]");
  EXPECT_EQ(line_to_add(request("m.test", "/@a%2fb", Method::Get, 80)),
            "[[allow]]\nhost = \"m.test\"\nports = [80]\nmethods = [\"GET\"]\npaths = "
            "[\"/*\"]\nencoded_slash = true");
  EXPECT_EQ(line_to_add(Connect{host("x.test"), 8443}), "[[tcp]]\nhost = \"x.test\"\nport = 8443");
  EXPECT_EQ(line_to_add(request("x.test", "/a/b/git-upload-pack", Method::Post)), "");
  EXPECT_EQ(line_to_add(request("x.local", "/")), "");
}

}  // namespace
}  // namespace sallyport::policy
