// One policy by whichever way: the explicit proxy, TLS and HTTP that come by themselves, and DNS. Each case
// is refused in one audit line, without a question to the host's name server and without an upstream.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "gate/catalogue.h"
#include "gate/egress_grant.h"
#include "gate/mutations.h"
#include "gate/spellings.h"
#include "gate/whole_front.h"

namespace sallyport::gate::testing {
namespace {

using namespace std::string_literals;

std::string verdict_of_sni(WholeFront& front, const std::string& host, const char* address = kAnyAddress) {
  return verdict_of(front.serve(endpoint(address, 443), {hello_to(host)}));
}
std::string get(const std::string& target, const std::string& host) {
  return request_for("GET", target, host);
}
std::string verdict_of_host(WholeFront& front, const std::string& host, const std::string& path = "/a") {
  return verdict_of(front.serve(endpoint(kAnyAddress, 80), {get(path, host)}));
}
std::string verdict_of_absolute(WholeFront& front, const std::string& host, const std::string& path = "/a") {
  return verdict_of(front.serve(kProxyDoor, {get("http://" + host + path, host)}));
}
std::string verdict_of_connect(WholeFront& front, const std::string& host, std::uint16_t port,
                               const std::string& said) {
  return verdict_of(front.serve(kProxyDoor, {connect_to_host(host, port) + said}));
}

// ---- A: spellings of hosts ----

TEST(Entries, AHostHasOneReadingByEveryWay) {
  WholeFront front(egress_grant());
  for (const auto& row : read_table("hosts.tsv")) {
    const std::string host = unescaped(row.at(0));
    const std::string wanted = row.at(1) == "-" ? "allowed" : row.at(1);
    SCOPED_TRACE(row.at(0));
    EXPECT_EQ(verdict_of_connect(front, host, 443, hello_to("forge.test")), wanted);
    EXPECT_EQ(verdict_of_connect(front, host, 80, get("/a", "forge.test")), wanted);
    EXPECT_EQ(verdict_of_absolute(front, host), wanted);
    EXPECT_EQ(verdict_of_host(front, host), wanted);
    EXPECT_EQ(verdict_of_sni(front, host), wanted);
    // DNS may be asked for anything: what cannot be a host's name is none that is allowed.
    const bool no_name = wanted == "bad_request" || host.starts_with('[');
    if (const auto query = dns_query(host)) {
      EXPECT_EQ(verdict_in_dns(front, *query), no_name ? "host_not_allowed" : wanted);
    }
  }
}

// ---- B: which hosts a rule means ----

void expect_by_every_way(WholeFront& front, const std::string& host, const std::string& wanted) {
  SCOPED_TRACE(host);
  EXPECT_EQ(verdict_of_connect(front, host, 443, hello_to(host)), wanted);
  EXPECT_EQ(verdict_of_connect(front, host, 80, get("/a", host)), wanted);
  EXPECT_EQ(verdict_of_absolute(front, host), wanted);
  EXPECT_EQ(verdict_of_host(front, host), wanted);
  EXPECT_EQ(verdict_of_sni(front, host), wanted);
  const auto query = dns_query(host);
  ASSERT_TRUE(query);
  EXPECT_EQ(verdict_in_dns(front, *query), wanted);
}

TEST(Entries, ARuleMeansTheSameHostsByEveryWay) {
  policy::Grant grant;
  grant.allow.push_back(allow_rule("*.wild.test", {policy::Method::Get}));
  grant.allow.push_back(allow_rule("api.ok.test", {policy::Method::Get}));
  grant.allow.push_back(allow_rule("exact.bad.wild.test", {policy::Method::Get}));
  grant.deny.push_back({.hosts = {*policy::HostPattern::parse("bad.wild.test"),
                                  *policy::HostPattern::parse("*.bad.wild.test")}});
  WholeFront front(std::move(grant));
  const std::vector<std::pair<const char*, const char*>> cases{
      {"wild.test", "host_not_allowed"},       // B1
      {"evil-wild.test", "host_not_allowed"},  // B2
      {"xwild.test", "host_not_allowed"},
      {"a.xwild.test", "host_not_allowed"},
      {"wild.tes", "host_not_allowed"},
      {"a.wild.test", "allowed"},  // B3
      {"A.WILD.Test", "allowed"},
      {"a.wild.test.", "allowed"},
      {"a.b.wild.test", "allowed"},  // B4
      {"wild.test.wild.test", "allowed"},
      {"wild.test.evil.test", "host_not_allowed"},  // B5
      {"a.wild.test.evil.test", "host_not_allowed"},
      {"api.ok.test", "allowed"},
      {"a.api.ok.test", "host_not_allowed"},
      {"ok.test", "host_not_allowed"},
      {"bad.wild.test", "denied_by_rule"},  // B10
      {"BAD.wild.test.", "denied_by_rule"},
      {"x.y.bad.wild.test", "denied_by_rule"},
      {"exact.bad.wild.test", "denied_by_rule"},
      {"notbad.wild.test", "allowed"},
  };
  for (const auto& [host, wanted] : cases) expect_by_every_way(front, host, wanted);
}

TEST(Entries, AnEmptyPolicyAllowsNothingByAnyWay) {
  WholeFront front({});  // B9
  for (const char* host : {"api.ok.test", "github.com", "a.b.c.test"}) {
    expect_by_every_way(front, host, "policy_empty");
  }
}

// ---- C: what comes behind a CONNECT ----

TEST(Entries, AConnectIsJudgedAndSoIsWhatComesInIt) {
  WholeFront front(egress_grant());
  for (const auto& row : read_table("tunnels.tsv")) {
    SCOPED_TRACE(row.at(0));
    const std::string wanted = row.at(1) == "-" ? "allowed" : row.at(1);
    const std::string payload =
        with_macro(row.at(2), {{"$CONNECT", "CONNECT forge.test:443 HTTP/1.1\\r\\n\\r\\n"},
                               {"$CLEAR", "CONNECT forge.test:80 HTTP/1.1\\r\\n\\r\\n"}});
    std::string bytes = unescaped(payload);
    if (row.size() > 3) bytes += hello_to(row.at(3) == "-" ? "" : row.at(3));
    EXPECT_EQ(verdict_of(front.serve(kProxyDoor, {bytes})), wanted);
    for (std::size_t cut = 1; cut < bytes.size(); cut += 1 + bytes.size() / 16) {
      EXPECT_EQ(verdict_of(front.serve(kProxyDoor, {bytes.substr(0, cut), bytes.substr(cut)})), wanted)
          << "cut at " << cut;
    }
  }
}

TEST(Entries, WhatAProxyCannotReadInOneWayReachesNobody) {
  WholeFront front(egress_grant());
  const std::string behind = request_for("GET", "http://forge.test/a", "forge.test");
  for (const auto& row : read_table("proxy.tsv")) {
    const bool is_refused = row.at(1).find(' ') == std::string::npos;
    if (!is_refused || row.at(2).starts_with('$')) continue;
    const std::string bytes = unescaped(row.at(2));
    SCOPED_TRACE(row.at(0));
    EXPECT_EQ(verdict_of(front.serve(kProxyDoor, {bytes + behind})), row.at(1));
    EXPECT_EQ(verdict_of(front.serve(kProxyDoor, {bytes, behind})), row.at(1));
    for (const auto& [how, spelled] : other_spellings(bytes)) {
      EXPECT_EQ(verdict_of(front.serve(kProxyDoor, {spelled + behind})), row.at(1)) << how;
    }
  }
}

TEST(Entries, NoMutationOfAConnectOpensWhatHasNoLine) {
  WholeFront front(egress_grant());
  std::mt19937 random(1);
  std::set<std::string> seen;
  for (int i = 0; i < 4000; ++i) {
    std::string bytes = connect_to_host("forge.test", i % 2 == 0 ? 80 : 443);
    if (i % 3 == 0) bytes = mutation_of(std::move(bytes), random);
    bytes += i % 2 == 0 ? get("/a", "forge.test") : hello_to("forge.test");
    if (i % 3 != 0) bytes = mutation_of(std::move(bytes), random);
    const Served served = front.serve(kProxyDoor, {bytes});
    ASSERT_EQ(served.lookups, 0) << escaped(bytes);
    ASSERT_EQ(served.opened, std::ranges::count(served.events, audit::Kind::Begin, &audit::Event::kind))
        << escaped(bytes);
    for (const audit::Event& event : served.events) {
      seen.emplace(code(event.reason));
      if (event.kind == audit::Kind::Begin) EXPECT_EQ(event.host, "forge.test") << escaped(bytes);
    }
  }
  EXPECT_THAT(seen, ::testing::IsSupersetOf({"none", "bad_request", "host_not_allowed", "port_not_allowed",
                                             "not_tls", "client_closed", "host_mismatch"}));
}

// ---- H5: credentials ----

TEST(Entries, NoCredentialIsForWhatComesInTheClear) {
  policy::Grant grant = egress_grant();
  grant.git.push_back({*policy::RepoPattern::parse("gits.test/o/r", policy::HostKind::Generic),
                       policy::Access::Push,
                       "key",
                       {}});
  WholeFront front(std::move(grant));
  const std::string url = "/o/r/info/refs?service=git-upload-pack";
  // A rule opens the one at port 80, for what is not git's.
  for (const auto& [host, wanted] :
       {std::pair{"keyed.test", "repo_not_granted"}, {"gits.test", "plain_http"}}) {
    EXPECT_EQ(verdict_of_host(front, host, url), wanted);
    EXPECT_EQ(verdict_of_absolute(front, host, url), wanted);
    EXPECT_EQ(verdict_of_connect(front, host, 80, get(url, host)), wanted);
    EXPECT_EQ(verdict_of_host(front, std::string(host) + ":443", url), wanted);
    EXPECT_EQ(verdict_of_absolute(front, std::string(host) + ":443", url), wanted);
  }
}

// ---- D: ClientHellos ----

struct Hello {
  const char* what;
  std::string bytes;
  const char* verdict;
  const char* where_a_host_was_named = "";  // "": the same
};

std::vector<Hello> hellos() {
  using namespace egress::test;
  const auto with_list = [](const std::string& data) { return hello_for(extension(0, data)); };
  const std::string name = sni("forge.test");
  const std::string good = hello_to("forge.test");
  return {
      {"D1 a port", hello_to("forge.test:443"), "bad_request"},
      {"D3 upper case", hello_to("FORGE.test"), "allowed"},
      {"D4 NUL", hello_to("forge.test\0.evil.test"s), "bad_request"},
      {"D5 two names", with_list(list(entry("forge.test") + entry("evil.test"))), "bad_request"},
      {"D5 the same name twice", with_list(list(entry("forge.test") + entry("forge.test"))), "bad_request"},
      {"D5 two extensions", hello_for(name + sni("evil.test")), "bad_request"},
      {"D5 another kind of name", with_list(list(entry("forge.test", 1))), "bad_request"},
      {"D6 an address", hello_to("93.184.216.34"), "ip_literal"},
      {"D6 an IPv6 address", hello_to("::1"), "ip_literal"},
      {"D7 no name", hello_to(""), "no_sni"},
      {"D7 an empty name", with_list(list(entry(""))), "no_sni"},
      {"D7 an empty list", with_list(list("")), "no_sni"},
      {"D8 LF", hello_to("forge.test\n"), "bad_request"},
      {"D8 a space", hello_to("forge test.test"), "bad_request"},
      {"D8 a percent", hello_to("forge%2etest"), "bad_request"},
      {"D8 an asterisk", hello_to("*.test"), "bad_request"},
      {"D8 a list longer than it is", with_list("\xff" + list(entry("forge.test"))), "bad_request"},
      {"D11 64 KiB", hello_for(std::string(extension(0x4a4a, std::string(60'000, 'x'))) + name), "too_large"},
      {"D12 an encrypted hello, which is not read", hello_for(name + extension(0xfe0d, "x")), "allowed"},
      {"D12 an encrypted hello to nobody", hello_for(sni("evil.test") + extension(0xfe0d, "x")),
       "host_not_allowed"},
      {"D13 TLS 1.1", record(message(hello_body(name, 0x0302))), "not_tls"},
      {"D13 SSL 3", record(message(hello_body(name, 0x0300))), "not_tls"},
      {"D13 SSL 2", "\x80\x2e\x01\x03\x03\0\x15\0\0\0\x10"s + std::string(37, '\7'), "not_tls"},
      {"D13 another record first", "\x17" + good.substr(1), "not_tls"},
      {"D13 another message first", record(message(hello_body(name), 2)), "not_tls"},
      {"a good name that is another's", hello_to("keyed.test"), "allowed", "sni_mismatch"},
      {"a good one", good, "allowed"},
  };
}

TEST(Entries, AHelloHasTheSameVerdictWhereverItComes) {
  WholeFront front(egress_grant());
  const std::string at_name = front.addresses().address_of(*policy::HostName::parse("forge.test")).str();
  for (const Hello& test : hellos()) {
    SCOPED_TRACE(test.what);
    const std::string named =
        *test.where_a_host_was_named != '\0' ? test.where_a_host_was_named : test.verdict;
    EXPECT_EQ(verdict_of(front.serve(endpoint(kAnyAddress, 443), {test.bytes})), test.verdict);
    EXPECT_EQ(verdict_of(front.serve(endpoint("2001:db8::1", 443), {test.bytes})), test.verdict);
    EXPECT_EQ(verdict_of(front.serve(endpoint(at_name.c_str(), 443), {test.bytes})), named);
    const std::string connect = connect_to_host("forge.test", 443);
    EXPECT_EQ(verdict_of(front.serve(kProxyDoor, {connect + test.bytes})), named);
    EXPECT_EQ(verdict_of(front.serve(kProxyDoor, {connect, test.bytes})), named);
    for (std::size_t cut = 1; cut < std::min<std::size_t>(test.bytes.size(), 300); cut += 7) {
      EXPECT_EQ(verdict_of(front.serve(endpoint(kAnyAddress, 443),
                                       {test.bytes.substr(0, cut), test.bytes.substr(cut)})),
                test.verdict)
          << "cut at " << cut;
    }
  }
}

TEST(Entries, NothingIsSplicedToANameThatNobodyCanSee) {
  policy::Grant grant = egress_grant();
  auto pinned = allow_rule("pin.test", {policy::Method::Get});
  pinned.ports = {policy::kHttpsPort};
  pinned.tls = policy::TlsMode::Splice;
  grant.allow.push_back(std::move(pinned));
  WholeFront front(std::move(grant));
  using namespace egress::test;
  const std::string encrypted = hello_for(sni("pin.test") + extension(0xfe0d, "x"));
  const std::string connect = connect_to_host("pin.test", 443);
  EXPECT_EQ(verdict_of(front.serve(endpoint(kAnyAddress, 443), {encrypted})), "ech");
  EXPECT_EQ(verdict_of(front.serve(kProxyDoor, {connect + encrypted})), "ech");
  EXPECT_EQ(verdict_of(front.serve(kProxyDoor, {connect + hello_to("forge.test")})), "sni_mismatch");
  EXPECT_EQ(verdict_of(front.serve(kProxyDoor, {connect + hello_to("")})), "no_sni");
}

}  // namespace
}  // namespace sallyport::gate::testing
