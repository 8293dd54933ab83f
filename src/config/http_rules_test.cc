#include "config/http_rules.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "config/testing.h"
#include "policy/decide.h"

namespace sallyport::config {
namespace {

using policy::Method;

PolicyFile parsed(const std::string& rules) {
  const auto policy = parse_policy("version = 1\n" + rules, "sallyport.toml", {});
  EXPECT_TRUE(policy) << joined(policy.error());
  return policy.value_or(PolicyFile{});
}

// Of the file and of the grant that is made of it.
std::string problems_of(const std::string& rules) {
  const auto policy = parse_policy("version = 1\n" + rules, "sallyport.toml", {});
  if (!policy) return joined(policy.error());
  const auto grant = make_grant(*policy, {}, {});
  return grant ? "" : joined(grant.error());
}

TEST(AllowRules, HaveDefaults) {
  const PolicyFile policy = parsed("[[allow]]\nhost = \"Registry.Test\"\n");
  ASSERT_EQ(policy.allow.size(), 1U);
  const policy::AllowRule& rule = policy.allow[0].rule;
  ASSERT_EQ(rule.hosts.size(), 1U);
  EXPECT_EQ(rule.hosts[0].str(), "registry.test");
  EXPECT_EQ(rule.ports, std::vector<std::uint16_t>{policy::kHttpsPort});
  EXPECT_EQ(rule.methods.str(), "GET, HEAD");
  EXPECT_TRUE(rule.paths.empty());
  EXPECT_EQ(rule.max_body, policy::kDefaultMaxBody);
  EXPECT_EQ(rule.tls, policy::TlsMode::Inspect);
  EXPECT_FALSE(rule.websocket);
  EXPECT_FALSE(rule.encoded_slash);
  EXPECT_EQ(rule.source.str(), "sallyport.toml:2");
}

TEST(AllowRules, SayWhatIsSpokenAtTheirPorts) {
  using policy::Scheme;
  const auto rule = [](const std::string& keys) {
    return parsed("[[allow]]\nhost = \"a.test\"\n" + keys).allow.at(0).rule;
  };
  EXPECT_EQ(rule("").scheme_at(443), Scheme::Https);
  EXPECT_EQ(rule("ports = [80, 8080]\n").scheme_at(80), Scheme::Http);
  EXPECT_EQ(rule("ports = [80, 8080]\n").scheme_at(8080), Scheme::Https);
  const policy::AllowRule plain = rule("scheme = \"http\"\n");
  EXPECT_EQ(plain.ports, std::vector<std::uint16_t>{policy::kHttpPort});
  EXPECT_EQ(plain.scheme_at(80), Scheme::Http);
  EXPECT_EQ(rule("scheme = \"http\"\nports = [8080]\n").scheme_at(8080), Scheme::Http);
  EXPECT_EQ(
      problems_of("[[allow]]\nhost = \"a.test\"\nscheme = \"ftp\"\n"),
      "sallyport.toml:4:10: scheme cannot be 'ftp'; write \"https\", or \"http\" for HTTP in the clear\n");
  EXPECT_EQ(problems_of("[[allow]]\nhost = \"a.test\"\nscheme = \"http\"\ntls = \"splice\"\n"),
            "sallyport.toml:2:1: port 80 has no TLS that could be spliced; give it a rule of its own\n");
  EXPECT_EQ(
      problems_of("[[allow]]\nhost = \"a.test\"\nscheme = \"http\"\nports = [8080]\n"
                  "[[allow]]\nhost = \"a.test\"\nports = [8080]\n"),
      "sallyport.toml:7:8: 'a.test' at port 8080 is https here and http by the rule at sallyport.toml:2; "
      "give both the same scheme\n");
}

TEST(TcpRules, MayNameManyHosts) {
  const PolicyFile policy = parsed("[[tcp]]\nhost = [\"a.test\", \"b.test\"]\nport = 22\n");
  ASSERT_EQ(policy.tcp.size(), 2U);
  EXPECT_EQ(policy.tcp[1].rule.host.str(), "b.test");
  EXPECT_EQ(policy.tcp[1].rule.port, 22);
}

TEST(AllowRules, HaveEverythingThatTheFileSays) {
  const PolicyFile policy = parsed(
      "[[allow]]\nhost = [\"a.test\",\n  \"*.b.test\"]\nports = [443, 80]\nmethods = [\"GET\", \"PATCH\"]\n"
      "paths = [\"/v1/*\", \"/**\"]\nmax_body = \"3GiB\"\ntls = \"inspect\"\nwebsocket = true\nencoded_slash "
      "= "
      "true\n");
  const policy::AllowRule& rule = policy.allow.at(0).rule;
  ASSERT_EQ(rule.hosts.size(), 2U);
  EXPECT_TRUE(rule.hosts[1].is_wildcard());
  EXPECT_EQ(policy.allow[0].host_places.at(1).line, 4);
  EXPECT_EQ(rule.ports, (std::vector<std::uint16_t>{443, 80}));
  EXPECT_EQ(rule.methods, (policy::Methods{Method::Get, Method::Patch}));
  ASSERT_EQ(rule.paths.size(), 2U);
  EXPECT_EQ(rule.max_body, std::uint64_t{3} << 30U);
  EXPECT_TRUE(rule.websocket);
  EXPECT_TRUE(rule.encoded_slash);
}

TEST(AllowRules, ThatSpliceAllowWhateverIsAsked) {
  const policy::AllowRule rule = parsed("[[allow]]\nhost = \"a.test\"\ntls = \"splice\"\n").allow.at(0).rule;
  EXPECT_EQ(rule.tls, policy::TlsMode::Splice);
  EXPECT_EQ(rule.methods, policy::Methods::all());
  EXPECT_EQ(rule.max_body, UINT64_MAX);
  EXPECT_TRUE(rule.websocket && rule.encoded_slash);
}

TEST(AllowRules, TakeEveryUnitOfABody) {
  const auto max_body = [](const std::string& text) {
    return parsed("[[allow]]\nhost = \"a.test\"\nmax_body = \"" + text + "\"\n").allow.at(0).rule.max_body;
  };
  EXPECT_EQ(max_body("0B"), 0U);
  EXPECT_EQ(max_body("17B"), 17U);
  EXPECT_EQ(max_body("2KiB"), 2048U);
  EXPECT_EQ(max_body("10MiB"), policy::kDefaultMaxBody);
  EXPECT_EQ(max_body("4294967295GiB"), std::uint64_t{4294967295} << 30U);
  EXPECT_EQ(max_body("unlimited"), UINT64_MAX);
}

TEST(AllowRules, HaveLimitsOnTheirLists) {
  const auto list = [](std::size_t count, const auto& item) {
    std::string text = "[";
    for (std::size_t i = 0; i < count; ++i) text += item(i) + ",\n";
    return text + "]\n";
  };
  const auto port = [](std::size_t i) { return std::to_string(1000 + i); };
  const auto path = [](std::size_t i) { return "\"/" + std::to_string(i) + "\""; };
  const auto host = [](std::size_t i) { return "\"h" + std::to_string(i) + ".test\""; };
  const std::string rule = "[[allow]]\nhost = \"a.test\"\n";
  EXPECT_EQ(problems_of(rule + "ports = " + list(policy::kMaxRulePorts, port)), "");
  EXPECT_EQ(problems_of(rule + "ports = " + list(policy::kMaxRulePorts + 1, port)),
            "sallyport.toml:68:1: 'ports' has more than 64 entries; make two rules of it\n");
  EXPECT_EQ(problems_of(rule + "paths = " + list(policy::kMaxRulePaths, path)), "");
  EXPECT_EQ(problems_of(rule + "paths = " + list(policy::kMaxRulePaths + 1, path)),
            "sallyport.toml:1004:1: 'paths' has more than 1000 entries; make two rules of it\n");
  EXPECT_EQ(problems_of("[[allow]]\nhost = " + list(policy::kMaxRuleHosts, host)), "");
  EXPECT_EQ(problems_of("[[allow]]\nhost = " + list(policy::kMaxRuleHosts + 1, host)),
            "sallyport.toml:200003:1: 'host' has more than 200000 entries; make two rules of it\n");
}

// By the file alone: nothing here may cost the square of the names.
TEST(Policy, HasRoomForAHundredThousandNames) {
  constexpr int kNames = 100'000;
  std::string allowed = "[[allow]]\nhost = [";
  std::string denied = "[[deny]]\nhost = [";
  for (int i = 0; i < kNames; ++i) {
    const std::string name = "name-" + std::to_string(i) + ".zone-" + std::to_string(i % 100) + ".test\"";
    allowed += "\"" + name + ", ";
    denied += "\"bad." + name + ",\n";
  }
  const std::string text = allowed + "\"*.wide.test\"]\n" + denied + "\"name-7.zone-7.test\"]\n";
  const PolicyFile policy = parsed(text);
  ASSERT_EQ(policy.allow.at(0).rule.hosts.size(), 100'001U);
  const auto grant = make_grant(policy, {}, {});
  ASSERT_TRUE(grant) << joined(grant.error());
  const auto verdict = [&](const char* name) {
    return policy::decide(*grant, policy::Connect{*policy::HostName::parse(name), policy::kHttpsPort}).reason;
  };
  EXPECT_EQ(verdict("name-99999.zone-99.test"), Reason::None);
  EXPECT_EQ(verdict("any.wide.test"), Reason::None);
  EXPECT_EQ(verdict("name-7.zone-7.test"), Reason::DeniedByRule);
  EXPECT_EQ(verdict("name-100000.zone-0.test"), Reason::HostNotAllowed);
}

TEST(Policy, WithAHundredThousandNamesTwiceSaysSoOnce) {
  std::string hosts;
  for (int i = 0; i < 100'000; ++i) hosts += "\"n" + std::to_string(i) + ".test\",";
  EXPECT_EQ(problems_of("[[allow]]\nhost = [" + hosts + "]\n[[allow]]\nhost = [" + hosts + "]\n"),
            "sallyport.toml:4:1: this [[allow]] adds nothing: the one at sallyport.toml:2 allows all of it; "
            "remove one of them\n");
}

TEST(RuleLint, ComparesThousandsOfRulesOfOneHostOnlySoFar) {
  std::string rules;
  for (int i = 0; i < 9'999; ++i) {
    rules += "[[allow]]\nhost = \"a.test\"\npaths = [\"/" + std::to_string(i) + "\"]\n";
  }
  EXPECT_EQ(problems_of(rules), "");
}

TEST(RuleLint, LeavesRulesThatHaveAnEffect) {
  for (const char* rules : {
           // More of the same host: another method, path, port, body, flag.
           "[[allow]]\nhost = \"a.test\"\n[[allow]]\nhost = \"a.test\"\nmethods = [\"POST\"]\n",
           "[[allow]]\nhost = \"a.test\"\npaths = [\"/a\"]\n[[allow]]\nhost = \"a.test\"\npaths = "
           "[\"/*/b\"]\n",
           "[[allow]]\nhost = \"a.test\"\n[[allow]]\nhost = \"a.test\"\nports = [443, 8443]\nmax_body = "
           "\"1B\"\n",
           "[[allow]]\nhost = \"a.test\"\n[[allow]]\nhost = \"a.test\"\npaths = [\"/x\"]\nwebsocket = true\n",
           "[[allow]]\nhost = \"a.test\"\n[[allow]]\nhost = \"a.test\"\npaths = [\"/x\"]\nencoded_slash = "
           "true\n",
           // No single rule takes all of it.
           "[[allow]]\nhost = [\"a.test\", \"b.test\"]\n[[allow]]\nhost = [\"b.test\", \"c.test\"]\n",
           // A wildcard is not its apex.
           "[[allow]]\nhost = \"*.a.test\"\n[[allow]]\nhost = \"a.test\"\n",
           // Takes x.b.a.test back from the splice.
           "[[allow]]\nhost = \"*.a.test\"\n[[allow]]\nhost = \"*.b.a.test\"\ntls = \"splice\"\n"
           "[[allow]]\nhost = \"x.b.a.test\"\n",
           // Other ports.
           "[[allow]]\nhost = \"a.test\"\n[[allow]]\nhost = \"a.test\"\nports = [8443]\ntls = \"splice\"\n",
           "[[allow]]\nhost = \"a.test\"\n[[tcp]]\nhost = \"a.test\"\nport = 5432\n",
           "[[allow]]\nhost = \"a.test\"\ntls = \"splice\"\n[[allow]]\nhost = \"a.test\"\nports = [8443]\n"
           "[[deny]]\nhost = \"a.test\"\nports = [8443]\npaths = [\"/x\"]\n",
           // A part of the wildcard, and an exact host below it.
           "[[allow]]\nhost = \"*.a.test\"\n[[deny]]\nhost = \"x.a.test\"\n",
           "[[allow]]\nhost = \"x.a.test\"\n[[deny]]\nhost = \"*.a.test\"\npaths = [\"/y\"]\n",
           "[[tcp]]\nhost = \"x.a.test\"\nport = 22\n[[deny]]\nhost = \"*.a.test\"\nports = [443]\n",
           "[[allow]]\nhost = \"*.a.test\"\ntls = \"splice\"\n[[git]]\nrepo = \"x.a.test/b/c\"\naccess = "
           "\"fetch\"\n",
       }) {
    EXPECT_EQ(problems_of(rules), "") << rules;
  }
}

TEST(RuleLint, SeesTheRulesOfTheCommandLine) {
  const auto policy = parse_policy("version = 1\n[[deny]]\nhost = \"a.test\"\n", "sallyport.toml", {});
  ASSERT_TRUE(policy);
  EXPECT_FALSE(make_grant(*policy, {}, {}));
  EXPECT_TRUE(make_grant(*policy, {*parse_git_option("a.test/b/c", {})}, {}));
}

TEST(Grant, HasWhatTheOperatorSaysOfHostsThatRulesLetIn) {
  const auto config = parse_operator_config(
      "version = 1\n[host.\"x.cdn.test\"]\naddress = \"10.0.0.7\"\n[host.\"db.test\"]\nallow_private = true\n"
      "[host.\"other.test\"]\nallow_private = true\n",
      "config.toml");
  ASSERT_TRUE(config);
  const auto policy = parse_policy(
      "version = 1\n[[allow]]\nhost = [\"*.cdn.test\", \"a.test\"]\n[[tcp]]\nhost = \"db.test\"\nport = "
      "5432\n"
      "[[tcp]]\nhost = \"mail.test\"\nport = 587\n",
      "sallyport.toml", *config);
  ASSERT_TRUE(policy);
  const auto grant = make_grant(*policy, {}, *config);
  ASSERT_TRUE(grant) << joined(grant.error());
  const auto find = [&](const char* name) { return grant->find_host(*policy::HostName::parse(name)); };
  EXPECT_EQ(grant->hosts.size(), 2U);  // not for each name of [[tcp]], which may be many
  ASSERT_NE(find("x.cdn.test"), nullptr);
  EXPECT_EQ(find("x.cdn.test")->address->address.str(), "10.0.0.7");
  ASSERT_NE(find("db.test"), nullptr);
  EXPECT_TRUE(find("db.test")->allow_private);
  EXPECT_EQ(find("mail.test"), nullptr);
  EXPECT_EQ(grant->tcp.size(), 2U);
}

}  // namespace
}  // namespace sallyport::config
