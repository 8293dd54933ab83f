#include "policy/host.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sallyport::policy {
namespace {

using namespace std::string_literals;

Reason reason_for(std::string_view text) {
  const Result<HostName> host = HostName::parse(text);
  return host ? Reason::None : host.error().reason;
}

TEST(HostName, RefusesEverySpellingOfAnAddressAsAnAddress) {
  const std::vector<std::string> spellings{
      "127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "0X7F000001", "0x7f.1", "0x7f.0x0.0x0.0x1",
      "0177.0.0.1", "017700000001", "127.0.0.1.", "127.0.0.1..", "127.1.", "0", "0.", "0.0.0.0", "00.0.0.0",
      "127.0.0.01", "1.1", "1.1.1", "255.255.255.255", "256.256.256.256", "4294967296",
      "99999999999999999999", "08.1", "0x", "0x.1", "1.0x7f", "10.0.0.0x1",
      // IPv6, bracketed or not.
      "::", "::1", "[::1]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]",
      "[::ffff:0:127.0.0.1]", "[64:ff9b::7f00:1]", "[64:ff9b:1::a9fe:a9fe]", "[2002:a9fe:a9fe::]", "[::]",
      "fe80::1", "[127.0.0.1]", "[2130706433]"};
  for (const std::string& text : spellings) EXPECT_EQ(code(reason_for(text)), "ip_literal") << text;
}

TEST(HostName, RefusesWhatHasNoSingleReadingAsMalformed) {
  const std::vector<std::string> spellings{
      "", ".", "..",
      // Zones, percent-encoding, broken brackets.
      "[fe80::1%25eth0]", "[fe80::1%eth0]", "[::1%25lo]", "fe80::1%eth0", "127%2e0%2e0%2e1",
      "%31%32%37.0.0.1", "api%2eok.test", "[::1", "::1]", "[]", "[api.ok.test]", "[::1].",
      // Bytes over 0x7e: full-width digits and dots, circled digits, letters.
      "\xef\xbc\x91\xef\xbc\x92\xef\xbc\x97.0.0.1", "\xe2\x91\xa0\xe2\x91\xa1\xe2\x91\xa6.0.0.1",
      ("127\xe3\x80\x82"
       "0\xe3\x80\x82"
       "0\xe3\x80\x82"
       "1"),
      "g\xc3\xadthub.com", "api.ok.test\xff",
      // Dots.
      "api.ok.test..", ".api.ok.test", "api..ok.test",
      // NUL, white space and controls, anywhere.
      "api.ok.test\0.evil.test"s, "api.ok.test\0"s, "\0api.ok.test"s, "127.0.0.1\0"s, "api.ok.test\t",
      " api.ok.test", "api.ok.test\r", "api.ok.test\n", "api ok.test", "127.0.0.1 x", "api.ok.test\x7f",
      // What belongs around a host, never into it.
      "api.ok.test@evil.test", "user:pw@api.ok.test", "evil.test#@api.ok.test", "evil.test\\@api.ok.test",
      "api.ok.test/", "api.ok.test:443", "api.ok.test?", "*.ok.test", "*", "api_x.ok.test",
      "api.ok.test,b.test",
      // Hyphens at an edge, numbers at the end, single labels.
      "-api.ok.test", "api-.ok.test", "api.ok.-test", "api.ok.1", "api.ok.0x1", "1.2.3.4.5", "localhost",
      "localhost.", "ip6-localhost", "instance-data", "metadata", "com"};
  for (const std::string& text : spellings) EXPECT_EQ(code(reason_for(text)), "bad_request") << text;
}

TEST(HostName, FoldsCaseAndDropsOneTrailingDotAndNothingElse) {
  EXPECT_EQ(HostName::parse("API.OK.TEST")->str(), "api.ok.test");
  EXPECT_EQ(HostName::parse("api.ok.test.")->str(), "api.ok.test");
  EXPECT_EQ(HostName::parse("Api.Ok.Test.")->str(), "api.ok.test");
  EXPECT_EQ(*HostName::parse("API.ok.test."), *HostName::parse("api.ok.test"));
}

TEST(HostName, TakesNamesThatOnlyLookOdd) {
  for (const char* text : {"a.b", "1and1.com", "123.example.com", "0x7f.example.com", "a--b.test", "x1.2y",
                           // A homograph is a name like any other; nobody lists it.
                           "xn--gthub-n4a.com", "127.0.0.1.example.com", "deadbeef.test"}) {
    const Result<HostName> host = HostName::parse(text);
    ASSERT_TRUE(host) << text;
    EXPECT_EQ(host->str(), text);
  }
}

TEST(HostName, KeepsTheLimitsOfDns) {
  const std::string label63(63, 'a');
  EXPECT_TRUE(HostName::parse(label63 + ".test"));
  EXPECT_EQ(code(reason_for(label63 + "a.test")), "bad_request");

  const std::string name253 = label63 + "." + label63 + "." + label63 + "." + std::string(61, 'b');
  ASSERT_EQ(name253.size(), HostName::kMaxBytes);
  EXPECT_TRUE(HostName::parse(name253));
  EXPECT_TRUE(HostName::parse(name253 + "."));
  EXPECT_EQ(code(reason_for(name253 + "b")), "bad_request");
  EXPECT_EQ(code(reason_for(name253 + "..")), "bad_request");
  EXPECT_EQ(code(reason_for(std::string(1'000'000, '1'))), "bad_request");
}

TEST(SpecialName, IsEveryNameThatMeansTheMachineOrItsSurroundings) {
  for (const char* text : {"x.localhost", "a.b.localhost", "localhost.localdomain", "printer.local",
                           "host.docker.internal", "metadata.google.internal", "kubernetes.default.svc",
                           "kubernetes.default.svc.cluster.local", "1.0.0.127.in-addr.arpa",
                           "router.home.arpa", "x.invalid", "x.onion", "x.alt", "HOST.DOCKER.INTERNAL."}) {
    const Result<HostName> host = HostName::parse(text);
    ASSERT_TRUE(host) << text;
    EXPECT_FALSE(special_name(*host).empty()) << text;
  }
  for (const char* text : {"github.com", "forge.test", "forge.example", "local.example.com",
                           "internal.corp.lan", "xlocalhost.test"}) {
    EXPECT_EQ(special_name(*HostName::parse(text)), "") << text;
  }
}

TEST(Authority, ReadsHostAndPort) {
  const Result<Authority> plain = parse_authority("Api.OK.test", 443);
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->host.str(), "api.ok.test");
  EXPECT_EQ(plain->port, 443);
  const Result<Authority> with_port = parse_authority("api.ok.test.:8443", 443);
  ASSERT_TRUE(with_port);
  EXPECT_EQ(with_port->host.str(), "api.ok.test");
  EXPECT_EQ(with_port->port, 8443);
  EXPECT_EQ(parse_authority("api.ok.test:65535", 443)->port, 65535);
}

TEST(Authority, RefusesWithTheReason) {
  struct Case {
    const char* text;
    const char* code;
  };
  for (const Case& c : std::vector<Case>{{"", "bad_request"},
                                         {"api.ok.test:", "bad_request"},
                                         {"api.ok.test:0", "bad_request"},
                                         {"api.ok.test:65536", "bad_request"},
                                         {"api.ok.test:+443", "bad_request"},
                                         {"api.ok.test:0443", "bad_request"},
                                         {"api.ok.test: 443", "bad_request"},
                                         {"api.ok.test:443:443", "bad_request"},
                                         {"user@api.ok.test:443", "bad_request"},
                                         {"user:pw@api.ok.test", "bad_request"},
                                         {"::1", "bad_request"},
                                         {"::1:443", "bad_request"},
                                         {"[::1", "bad_request"},
                                         {"[::1]x:443", "bad_request"},
                                         {"[fe80::1%25eth0]:443", "bad_request"},
                                         {"[api.ok.test]:443", "bad_request"},
                                         {"[::1]", "ip_literal"},
                                         {"[::1]:443", "ip_literal"},
                                         {"127.1:443", "ip_literal"},
                                         {"2130706433:80", "ip_literal"}}) {
    const Result<Authority> authority = parse_authority(c.text, 443);
    ASSERT_FALSE(authority) << c.text;
    EXPECT_EQ(code(authority.error().reason), c.code) << c.text;
  }
}

}  // namespace
}  // namespace sallyport::policy
