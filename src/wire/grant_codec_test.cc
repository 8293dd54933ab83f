#include "wire/grant_codec.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "wire/codec.h"
#include "wire/sealed.h"

namespace sallyport::wire {
namespace {

policy::HostName host(std::string_view text) {
  return policy::HostName::parse(text).value();
}

policy::Grant sample() {
  policy::Grant grant;
  grant.hosts[host("github.com")].kind = policy::HostKind::GitHub;
  grant.hosts[host("git.example.org")] = {.kind = policy::HostKind::GitLab,
                                          .address = policy::parse_pinned_address("10.1.2.3:8443"),
                                          .allow_private = true,
                                          .ca_pem = std::string(200'000, 'c')};
  grant.hosts[host("v6.example.org")].address = policy::parse_pinned_address("fd00::1");
  grant.hosts_below[host("corp.example")] = {.kind = policy::HostKind::Generic,
                                             .address = policy::parse_pinned_address("10.1.2.4"),
                                             .allow_private = false,
                                             .ca_pem = "ca"};
  grant.hosts_below[host("dev.corp.example")].allow_private = true;
  grant.resolvers = {*policy::parse_pinned_address("127.0.0.53"),
                     *policy::parse_pinned_address("[2001:db8::53]:5353")};
  grant.git.push_back({policy::RepoPattern::parse("github.com/acme/*", policy::HostKind::GitHub).value(),
                       policy::Access::Push,
                       "github",
                       {"sallyport.toml", 3}});
  grant.git.push_back(
      {policy::RepoPattern::parse("git.example.org/group/sub/widget", policy::HostKind::GitLab).value(),
       policy::Access::Fetch,
       "",
       {"--git", 0}});
  using std::chrono::milliseconds;
  grant.timeouts = {milliseconds(1), milliseconds(2), milliseconds(3), milliseconds(4), policy::kMaxTimeout};
  grant.limits = policy::Limits::highest();
  grant.limits.connections = 1;
  grant.limits.requests = Rate{.amount = 2, .per = std::chrono::hours(24), .burst = policy::kMaxRateAmount};
  grant.limits.upload = Rate{.amount = policy::kMaxRateAmount, .per = std::chrono::seconds(1), .burst = 3};
  grant.limits.tunnel_upload = 4;
  return grant;
}

void expect_same(const std::map<policy::HostName, policy::UpstreamHost>& a,
                 const std::map<policy::HostName, policy::UpstreamHost>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, entry] : a) {
    const auto other = b.find(name);
    ASSERT_NE(other, b.end()) << name.str();
    EXPECT_EQ(entry.kind, other->second.kind);
    EXPECT_EQ(entry.allow_private, other->second.allow_private);
    EXPECT_EQ(entry.ca_pem, other->second.ca_pem);
    EXPECT_EQ(entry.address, other->second.address);
  }
}

void expect_same(const policy::Grant& a, const policy::Grant& b) {
  expect_same(a.hosts, b.hosts);
  expect_same(a.hosts_below, b.hosts_below);
  EXPECT_EQ(a.resolvers, b.resolvers);
  ASSERT_EQ(a.git.size(), b.git.size());
  for (std::size_t i = 0; i < a.git.size(); ++i) {
    EXPECT_TRUE(a.git[i].repo.same_as(b.git[i].repo));
    EXPECT_EQ(a.git[i].repo.str(), b.git[i].repo.str());
    EXPECT_EQ(a.git[i].access, b.git[i].access);
    EXPECT_EQ(a.git[i].credential, b.git[i].credential);
    EXPECT_EQ(a.git[i].source.str(), b.git[i].source.str());
  }
  EXPECT_EQ(a.timeouts, b.timeouts);
  EXPECT_EQ(a.limits, b.limits);
}

TEST(GrantCodec, ReadsBackWhatWasWritten) {
  const auto decoded = decode_grant(encode_grant(sample()));
  ASSERT_TRUE(decoded) << decoded.error().detail;
  expect_same(sample(), *decoded);
}

TEST(GrantCodec, ReadsBackRulesOfEveryKind) {
  policy::Grant grant;
  policy::AllowRule allow;
  allow.hosts = {*policy::HostPattern::parse("api.ok.test"), *policy::HostPattern::parse("*.wild.test")};
  allow.ports = {443, 8443};
  allow.methods = {policy::Method::Post};
  allow.paths = {*policy::PathPattern::parse("/v1/**")};
  allow.scheme = policy::Scheme::Http;
  allow.max_body = 7;
  allow.tls = policy::TlsMode::Splice;
  allow.websocket = true;
  allow.encoded_slash = true;
  allow.source = {"sallyport.toml", 9};
  grant.allow.push_back(allow);
  policy::DenyRule deny;
  deny.hosts = {*policy::HostPattern::parse("bad.wild.test")};
  deny.source = {"sallyport.toml", 12};
  grant.deny.push_back(deny);
  grant.tcp.push_back({*policy::HostName::parse("db.test"), 5432, {"sallyport.toml", 15}});
  const std::string bytes = encode_grant(grant);
  const auto decoded = decode_grant(bytes);
  ASSERT_TRUE(decoded) << decoded.error().detail;
  const policy::AllowRule& read = decoded->allow.at(0);
  EXPECT_EQ(read.hosts, allow.hosts);
  EXPECT_EQ(read.ports, allow.ports);
  EXPECT_EQ(read.methods, allow.methods);
  EXPECT_EQ(read.paths, allow.paths);
  EXPECT_EQ(read.scheme, policy::Scheme::Http);
  EXPECT_EQ(read.max_body, 7U);
  EXPECT_EQ(read.tls, policy::TlsMode::Splice);
  EXPECT_TRUE(read.websocket);
  EXPECT_TRUE(read.encoded_slash);
  EXPECT_EQ(read.source, allow.source);
  EXPECT_TRUE(decoded->deny.at(0).is_total());
  EXPECT_EQ(decoded->tcp.at(0).port, 5432);
  EXPECT_EQ(encode_grant(*decoded), bytes);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(decode_grant(std::string_view(bytes).substr(0, size))) << size;
  }
}

TEST(GrantCodec, AnEmptyGrantStaysEmpty) {
  const auto decoded = decode_grant(encode_grant({}));
  ASSERT_TRUE(decoded);
  EXPECT_TRUE(decoded->empty());
}

TEST(GrantCodec, ThousandsOfRulesPass) {
  policy::Grant grant = sample();
  while (grant.git.size() < kMaxGrantRules) grant.git.push_back(grant.git.front());
  const auto decoded = decode_grant(encode_grant(grant));
  ASSERT_TRUE(decoded) << decoded.error().detail;
  EXPECT_EQ(decoded->git.size(), kMaxGrantRules);
  grant.git.push_back(grant.git.front());
  EXPECT_FALSE(decode_grant(encode_grant(grant)));
}

TEST(GrantCodec, AHundredThousandNamesPass) {
  policy::Grant grant;
  policy::AllowRule rule;
  for (int i = 0; i < 100'000; ++i) {
    const std::string name = "name-" + std::to_string(i) + ".test";
    rule.hosts.push_back(*policy::HostPattern::parse(name));
    grant.tcp.push_back({*policy::HostName::parse(name), 5432, {"/home/user/project/sallyport.toml", i}});
  }
  grant.allow.push_back(std::move(rule));
  const auto decoded = decode_grant(encode_grant(grant));
  ASSERT_TRUE(decoded) << decoded.error().detail;
  EXPECT_EQ(decoded->tcp.size(), 100'000U);
  EXPECT_EQ(decoded->allow[0].hosts.size(), 100'000U);
}

TEST(GrantCodec, HasALimitOnNameServers) {
  policy::Grant grant;
  grant.resolvers.assign(policy::kMaxResolvers, *policy::parse_pinned_address("127.0.0.53"));
  EXPECT_TRUE(decode_grant(encode_grant(grant)));
  grant.resolvers.push_back(grant.resolvers.front());
  EXPECT_FALSE(decode_grant(encode_grant(grant)));
}

TEST(GrantCodec, RefusesEveryTruncationAndAnExtraByte) {
  policy::Grant grant = sample();
  for (auto& [name, entry] : grant.hosts) entry.ca_pem = "pem";
  const std::string bytes = encode_grant(grant);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(decode_grant(std::string_view(bytes).substr(0, size))) << size;
  }
  EXPECT_FALSE(decode_grant(bytes + "x"));
}

// One host and one rule, written by hand.
struct Forged {
  std::string host = "github.com";
  std::string pattern = "github.com/acme/widget";
  std::uint8_t kind = 1;
  std::uint8_t access = 1;
  std::uint8_t version = 3;
  std::uint32_t idle_ms = 1;
  std::uint32_t connections = 1;
  std::uint64_t requests = 1;
  std::uint32_t per = 1;
  std::uint32_t tunnel_idle_ms = 1;

  std::string bytes() const {
    Writer out;
    out.u8(version).u32(1).string(host).u8(kind).u8(0).u8(0).string("");
    out.u32(1).string(pattern).u8(access).string("c").string("f").u32(1);
    out.u32(0).u32(0).u32(0).u32(0);
    out.u32(1).u32(1).u32(1).u32(1).u32(idle_ms);
    out.u32(connections).u32(1).u32(1).u32(1);
    out.u8(0).u8(1).u64(requests).u32(per).u64(1).u8(0).u8(0).u8(0);
    out.u32(tunnel_idle_ms).u32(1).u64(0).u64(0);
    out.u32(0);
    return out.take();
  }
};

TEST(GrantCodec, ParsesEveryNameAgain) {
  ASSERT_TRUE(decode_grant(Forged{}.bytes()));
  const std::pair<const char*, Forged> cases[] = {
      {"a host that is an address", {.host = "127.0.0.1"}},
      {"a host that is not canonical", {.host = "GitHub.com"}},
      {"a rule for a host without an entry", {.pattern = "gitlab.com/acme/widget"}},
      {"a rule that is no pattern", {.pattern = "github.com/acme"}},
      {"a rule with a dotted segment", {.pattern = "github.com/../widget"}},
      {"a rule that nests where groups do not", {.pattern = "github.com/a/b/c"}},
      {"a rule that is not canonical", {.pattern = "GITHUB.com/acme/widget"}},
      {"an unknown kind", {.kind = 5}},
      {"an unknown access", {.access = 2}},
      {"an unknown version", {.version = 2}},
      {"no time at all", {.idle_ms = 0}},
      {"more than a day", {.idle_ms = 86'400'001}},
      {"no connection at all", {.connections = 0}},
      {"too many connections", {.connections = policy::kMaxAtOnce + 1}},
      {"no request at all", {.requests = 0}},
      {"more requests than are counted", {.requests = policy::kMaxRateAmount + 1}},
      {"a rate without a period", {.per = 0}},
      {"a rate of more than a day", {.per = 86'401}},
      {"no time for a tunnel", {.tunnel_idle_ms = 0}},
      {"too much time for a tunnel", {.tunnel_idle_ms = 86'400'001}},
  };
  for (const auto& [sentence, forged] : cases) EXPECT_FALSE(decode_grant(forged.bytes())) << sentence;
}

TEST(GrantCodec, RefusesAHostTwice) {
  Writer out;
  out.u8(3).u32(2);
  for (int i = 0; i < 2; ++i) out.string("github.com").u8(1).u8(0).u8(0).string("");
  for (int lists = 0; lists < 4; ++lists) out.u32(0);
  for (int i = 0; i < 5; ++i) out.u32(1);
  const auto decoded = decode_grant(out.take());
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().detail, "grant: hosts out of order");
}

TEST(SealedMemory, GivesBackWhatWasPutIn) {
  const std::string bytes = encode_grant(sample());
  const auto memfd = to_memfd(bytes);
  ASSERT_TRUE(memfd) << memfd.error().detail;
  const auto read = read_memfd(*memfd, kMaxGrantBytes);
  ASSERT_TRUE(read) << read.error().detail;
  EXPECT_EQ(*read, bytes);
}

TEST(SealedMemory, RefusesMoreThanTheLimitAndWhatIsNotSealed) {
  const auto memfd = to_memfd("12345");
  ASSERT_TRUE(memfd);
  EXPECT_TRUE(read_memfd(*memfd, 5));
  EXPECT_FALSE(read_memfd(*memfd, 4));

  const Fd open_memory(::memfd_create("open", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_FALSE(read_memfd(open_memory, 5));
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const Fd reader(ends[0]);
  const Fd writer(ends[1]);
  EXPECT_FALSE(read_memfd(reader, 5));
}

TEST(SealedMemory, CannotBeChangedAnyMore) {
  const auto memfd = to_memfd("12345");
  ASSERT_TRUE(memfd);
  EXPECT_EQ(::pwrite(memfd->get(), "x", 1, 0), -1);
  EXPECT_EQ(::ftruncate(memfd->get(), 1), -1);
  EXPECT_EQ(::ftruncate(memfd->get(), 10), -1);
}

}  // namespace
}  // namespace sallyport::wire
