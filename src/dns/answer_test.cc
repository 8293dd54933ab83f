#include "dns/answer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "dns/message.h"
#include "dns/testing.h"

namespace sallyport::dns {
namespace {

using namespace std::string_literals;
using testing::kOpt;
using testing::make_query;
using testing::raw_query;
using testing::read_answer;

constexpr int kNoError = 0;
constexpr int kFormErr = 1;
constexpr int kNxDomain = 3;
constexpr int kRefused = 5;

policy::Grant grant_of(const std::vector<std::string>& repos) {
  policy::Grant grant;
  for (const auto& repo : repos) {
    auto pattern = policy::RepoPattern::parse(repo, policy::HostKind::Generic);
    EXPECT_TRUE(pattern) << repo;
    grant.hosts.emplace(pattern->host(), policy::UpstreamHost{});
    grant.git.push_back({*std::move(pattern), policy::Access::Fetch, "", {}});
  }
  return grant;
}

class Dns : public ::testing::Test {
 protected:
  Reply ask(std::string_view query) { return answer(query, grant_, addresses_, "00ff"); }

  policy::Grant grant_ = grant_of({"api.ok.test/acme/widget", "zed.ok.test/a/b"});
  SyntheticAddresses addresses_{grant_};
};

TEST_F(Dns, AllowedNameHasItsSyntheticAddress) {
  const Reply reply = ask(make_query("api.ok.test", kTypeA));
  const auto header = read_answer(reply.bytes);
  EXPECT_EQ(header.id, 0x1234);
  EXPECT_EQ(header.flags, 0x8580);  // QR, AA, RD, RA
  EXPECT_EQ(header.answers, 1);
  EXPECT_TRUE(reply.bytes.ends_with("\0\0\0\x3c\0\x04\xc6\x12\0\x02"s));
  EXPECT_FALSE(reply.refused);
}

TEST_F(Dns, ComparesNamesWithoutCaseAndRepeatsTheQuestionInItsOwn) {
  const std::string query = make_query("aPi.oK.TEst", kTypeA);
  const Reply reply = ask(query);
  EXPECT_EQ(read_answer(reply.bytes).answers, 1);
  EXPECT_EQ(reply.bytes.substr(kHeaderBytes, query.size() - kHeaderBytes), query.substr(kHeaderBytes));
}

TEST_F(Dns, AllowedNameHasNoDataOfAnyOtherType) {
  // NS, CNAME, SOA, NULL, PTR, MX, TXT, AAAA, LOC, SRV, DNSKEY, SVCB, HTTPS, CAA, 65535
  for (const int type : {2, 5, 6, 10, 12, 15, 16, 28, 29, 33, 48, 64, 65, 257, 65535}) {
    const Reply reply = ask(make_query("api.ok.test", static_cast<std::uint16_t>(type)));
    const auto header = read_answer(reply.bytes);
    EXPECT_EQ(header.rcode(), kNoError) << type;
    EXPECT_EQ(header.answers, 0) << type;
    EXPECT_EQ(header.authorities, 1) << type;
    EXPECT_FALSE(reply.refused) << type;
  }
}

TEST_F(Dns, EveryOtherNameIsDeniedWithItsReason) {
  struct Case {
    std::string wire_name;
    Reason reason;
  };
  const std::vector<Case> cases{
      {"\x04"
       "evil\x04"
       "test\0"s,
       Reason::HostNotAllowed},
      {"\x02"
       "ok\x04"
       "test\0"s,
       Reason::HostNotAllowed},  // a parent
      {"\x01"
       "x\x03"
       "api\x02"
       "ok\x04"
       "test\0"s,
       Reason::HostNotAllowed},  // a child
      {"\x03"
       "api\x02"
       "ok\x04"
       "test\x04"
       "corp\x05"
       "local\0"s,
       Reason::HostNotAllowed},
      {"\x09"
       "localhost\0"s,
       Reason::HostNotAllowed},
      {"\x04"
       "wpad\0"s,
       Reason::HostNotAllowed},
      {"\0"s, Reason::HostNotAllowed},
      {"\x0f"
       "_acme-challenge\x03"
       "api\x02"
       "ok\x04"
       "test\0"s,
       Reason::HostNotAllowed},
      {"\x13"
       "use-application-dns\x03"
       "net\0"s,
       Reason::HostNotAllowed},
      {"\x0b"
       "api.ok.test\0"s,
       Reason::HostNotAllowed},  // dots within one label
      {"\x07"
       "api\0.ok\x04"
       "test\0"s,
       Reason::HostNotAllowed},
      {"\x03"
       "127\x01"
       "0\x01"
       "0\x01"
       "1\0"s,
       Reason::IpLiteral},
      {"\x0a"
       "2130706433\0"s,
       Reason::IpLiteral},
      {"\x04"
       "0x7f\x01"
       "1\0"s,
       Reason::IpLiteral},
  };
  for (const auto& test : cases) {
    const Reply reply = ask(raw_query(test.wire_name, kTypeA));
    const auto header = read_answer(reply.bytes);
    EXPECT_EQ(header.rcode(), kNxDomain) << test.wire_name;
    EXPECT_EQ(header.answers, 0) << test.wire_name;
    EXPECT_EQ(header.authorities, 1) << test.wire_name;
    ASSERT_TRUE(reply.refused) << test.wire_name;
    EXPECT_EQ(reply.refused->reason, test.reason) << test.wire_name;
    EXPECT_EQ(reply.refused->kind, audit::Kind::Refused);
    EXPECT_EQ(reply.refused->entry, audit::Entry::Dns);
  }
}

TEST_F(Dns, RefusalNamesWhatWasAsked) {
  const Reply reply = ask(make_query("Evil.Test", 28));
  ASSERT_TRUE(reply.refused);
  EXPECT_EQ(reply.refused->host, "evil.test");
  EXPECT_EQ(reply.refused->path, "AAAA");
  EXPECT_EQ(reply.refused->port, 53);
}

TEST_F(Dns, EveryRefusalCarriesTheRequestsIdToClientAndLog) {
  const std::string id = "0123456789abcdef";
  struct Case {
    std::string name;
    std::uint16_t type;
    std::uint16_t klass;
    Reason reason;
  };
  for (const auto& test : {Case{"evil.test", kTypeA, kClassIn, Reason::HostNotAllowed},
                           Case{"127.0.0.1", kTypeA, kClassIn, Reason::IpLiteral},
                           Case{"api.ok.test", kTypeAny, kClassIn, Reason::BadDnsQuery},
                           Case{"api.ok.test", kTypeAxfr, kClassIn, Reason::BadDnsQuery},
                           Case{"version.bind", 16, 3, Reason::BadDnsQuery}}) {
    SCOPED_TRACE(test.name);
    const std::string query = make_query(test.name, test.type, {.klass = test.klass, .additional = kOpt});
    const Reply reply = answer(query, grant_, addresses_, id);
    ASSERT_TRUE(reply.refused);
    EXPECT_EQ(reply.refused->request, id);
    EXPECT_EQ(code(reply.refused->reason), code(test.reason));
    EXPECT_TRUE(reply.bytes.ends_with(std::string(info(test.reason).sentence) + " request " + id));
    EXPECT_LE(reply.bytes.size(), kMaxAnswerBytes);
  }
  EXPECT_EQ(answer("x", grant_, addresses_, id).refused->request, id);
}

TEST_F(Dns, DenialCarriesTheExtendedErrorForEdnsClientsOnly) {
  const std::string blocked =
      "\0\x0f\0\x33\0\x0f"s + std::string(info(Reason::HostNotAllowed).sentence) + " request 00ff";
  EXPECT_TRUE(ask(make_query("evil.test", kTypeA, {.additional = kOpt})).bytes.ends_with(blocked));
  EXPECT_EQ(read_answer(ask(make_query("evil.test", kTypeA)).bytes).additionals, 0);
}

TEST_F(Dns, EmptyPolicyDeniesEverything) {
  const policy::Grant empty;
  SyntheticAddresses addresses(empty);
  const Reply reply = answer(make_query("api.ok.test", kTypeA), empty, addresses, "00ff");
  EXPECT_EQ(read_answer(reply.bytes).rcode(), kNxDomain);
  ASSERT_TRUE(reply.refused);
  EXPECT_EQ(reply.refused->reason, Reason::PolicyEmpty);
}

TEST_F(Dns, RefusesAnyTransfersAndOtherClassesForEveryName) {
  constexpr std::uint16_t kChaos = 3;
  for (const std::string_view name : {"api.ok.test", "evil.test", "version.bind"}) {
    for (const std::string& query :
         {make_query(name, kTypeAny), make_query(name, kTypeAxfr), make_query(name, kTypeIxfr),
          make_query(name, 16, {.klass = kChaos}), make_query(name, kTypeA, {.klass = 255})}) {
      const Reply reply = ask(query);
      EXPECT_EQ(read_answer(reply.bytes).rcode(), kRefused) << name;
      EXPECT_EQ(read_answer(reply.bytes).answers, 0) << name;
      ASSERT_TRUE(reply.refused) << name;
      EXPECT_EQ(reply.refused->reason, Reason::BadDnsQuery) << name;
    }
  }
}

TEST_F(Dns, AnswersMalformedQueriesWithAnErrorAlone) {
  const Reply reply = ask(raw_query("\xc0\x0c", kTypeA));
  EXPECT_EQ(read_answer(reply.bytes).rcode(), kFormErr);
  EXPECT_EQ(reply.bytes.size(), kHeaderBytes);
  ASSERT_TRUE(reply.refused);
  EXPECT_EQ(reply.refused->reason, Reason::BadDnsQuery);
}

TEST_F(Dns, SendsNothingBackToAnAnswer) {
  const Reply reply = ask(make_query("api.ok.test", kTypeA, {.flags = 0x8180}));
  EXPECT_EQ(reply.bytes, "");
  ASSERT_TRUE(reply.refused);
  EXPECT_EQ(reply.refused->reason, Reason::BadDnsQuery);
}

policy::HostName host(std::string_view text) {
  return *policy::HostName::parse(text);
}

policy::IpAddress address(std::string_view text) {
  return *policy::IpAddress::parse(text);
}

policy::Grant grant_with_wildcard() {
  policy::Grant grant = grant_of({"b.test.test/x/y"});
  policy::AllowRule rule;
  rule.hosts = {*policy::HostPattern::parse("*.wild.test"), *policy::HostPattern::parse("a.ok.test"),
                *policy::HostPattern::parse("b.test.test")};
  grant.allow.push_back(rule);
  grant.tcp.push_back({host("db.ok.test"), 5432, {}});
  return grant;
}

TEST(SyntheticAddresses, StandEachForOneListedHostBeginningBehindTheNameServer) {
  const policy::Grant grant = grant_with_wildcard();
  for (int made_again = 0; made_again < 2; ++made_again) {
    SyntheticAddresses addresses(grant);
    const std::vector<std::pair<std::string, std::string>> expected{
        {"b.test.test", "198.18.0.2"}, {"db.ok.test", "198.18.0.3"}, {"a.ok.test", "198.18.0.4"}};
    for (const auto& [name, text] : expected) {
      EXPECT_EQ(addresses.address_of(host(name)).str(), text);
      ASSERT_NE(addresses.host_at(address(text)), nullptr);
      EXPECT_EQ(addresses.host_at(address(text))->str(), name);
    }
    for (const char* none :
         {"198.18.0.0", "198.18.0.1", "198.18.0.5", "198.19.224.0", "198.20.0.2", "192.0.2.1"}) {
      EXPECT_EQ(addresses.host_at(address(none)), nullptr) << none;
    }
  }
  EXPECT_EQ(SyntheticAddresses::own().str(), "198.18.0.1");
}

TEST(SyntheticAddresses, LendsOneToEachNameBelowAWildcardAndTakesTheOldestBack) {
  const policy::Grant grant = grant_with_wildcard();
  SyntheticAddresses addresses(grant);
  const auto name = [](std::size_t i) { return host("n" + std::to_string(i) + ".wild.test"); };
  EXPECT_EQ(addresses.address_of(name(0)).str(), "198.19.224.0");
  EXPECT_EQ(addresses.address_of(name(1)).str(), "198.19.224.1");
  for (std::size_t i = 2; i < kMaxWildcardAddresses; ++i) addresses.address_of(name(i));
  EXPECT_EQ(addresses.address_of(name(0)).str(), "198.19.224.0");  // asked for again: the newest
  EXPECT_EQ(addresses.address_of(name(kMaxWildcardAddresses)).str(), "198.19.224.1");
  EXPECT_EQ(*addresses.host_at(address("198.19.224.1")), name(kMaxWildcardAddresses));
  EXPECT_EQ(*addresses.host_at(address("198.19.224.0")), name(0));
  for (std::size_t i = 0; i < 100'000; ++i) addresses.address_of(name(i));
  EXPECT_EQ(addresses.wildcard_names(), kMaxWildcardAddresses);
  EXPECT_EQ(*addresses.host_at(addresses.address_of(name(99'999))), name(99'999));
}

TEST(SyntheticAddresses, LendToListedNamesThatGotNoAddressOfTheirOwn) {
  policy::Grant grant;
  policy::AllowRule rule;
  for (std::size_t i = 0; i < kMaxListedAddresses + 10; ++i) {
    rule.hosts.push_back(*policy::HostPattern::parse("h" + std::to_string(i) + ".test"));
  }
  grant.allow.push_back(rule);
  SyntheticAddresses addresses(grant);
  const auto last_listed = host("h" + std::to_string(kMaxListedAddresses - 1) + ".test");
  EXPECT_EQ(addresses.address_of(last_listed).str(), "198.19.212.193");
  EXPECT_EQ(*addresses.host_at(address("198.19.212.193")), last_listed);
  EXPECT_EQ(addresses.address_of(host("h120009.test")).str(), "198.19.224.0");
}

TEST(SyntheticAddresses, KnowTheirRange) {
  const auto in_range = [](const char* text) {
    return SyntheticAddresses::in_range(*policy::IpAddress::parse(text));
  };
  EXPECT_TRUE(in_range("198.18.0.0"));
  EXPECT_TRUE(in_range("198.19.255.255"));
  EXPECT_FALSE(in_range("198.17.255.255"));
  EXPECT_FALSE(in_range("198.20.0.0"));
  EXPECT_FALSE(in_range("c612::1"));
}

}  // namespace
}  // namespace sallyport::dns
