#include "egress/client_hello.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <string>
#include <vector>

#include "egress/test_client.h"
#include "egress/test_hello.h"

namespace sallyport::egress {
namespace {

using namespace std::string_literals;

using namespace test;

TEST(ServerName, IsReadInLowerCaseWithoutOneTrailingDot) {
  for (const char* name : {"api.ok.test", "API.ok.TEST", "api.ok.test."}) {
    const auto host = parse_server_name(list(entry(name)));
    ASSERT_TRUE(host) << name;
    EXPECT_EQ(host->str(), "api.ok.test") << name;
  }
}

TEST(ServerName, RefusesEveryNameThatIsNotOneHost) {
  struct Case {
    std::string name;
    Reason reason;
  };
  const std::vector<Case> cases{
      {"", Reason::NoSni},
      {"api.ok.test:443", Reason::BadRequest},
      {"api.ok.test\0.evil.test"s, Reason::BadRequest},
      {"api.ok.test\n", Reason::BadRequest},
      {"api ok.test", Reason::BadRequest},
      {"api%2eok.test", Reason::BadRequest},
      {"*.ok.test", Reason::BadRequest},
      {"api.ok.test..", Reason::BadRequest},
      {".api.ok.test", Reason::BadRequest},
      {"api_x.ok.test", Reason::BadRequest},
      {"b\xc3\xbc"
       "cher.test",
       Reason::BadRequest},
      {"localhost", Reason::BadRequest},
      {std::string(254, 'a'), Reason::BadRequest},
      {"127.0.0.1", Reason::IpLiteral},
      {"127.1", Reason::IpLiteral},
      {"2130706433", Reason::IpLiteral},
      {"0x7f000001", Reason::IpLiteral},
      {"[::1]", Reason::IpLiteral},
      {"::1", Reason::IpLiteral},
  };
  for (const auto& test : cases) {
    const auto host = parse_server_name(list(entry(test.name)));
    ASSERT_FALSE(host) << test.name;
    EXPECT_EQ(host.error().reason, test.reason) << test.name << ": " << host.error().detail;
  }
}

TEST(ServerName, EscapesTheNameInItsDetail) {
  EXPECT_EQ(parse_server_name(list(entry("a\n.test"))).error().detail.find('\n'), std::string::npos);
}

TEST(ServerName, RefusesEveryListThatIsNotOneHostName) {
  const std::string name = entry("api.ok.test");
  struct Case {
    std::string_view why;
    std::string bytes;
    Reason reason;
  };
  const std::vector<Case> cases{
      {"nothing", "", Reason::BadRequest},
      {"one byte", "\0"s, Reason::BadRequest},
      {"an empty list", list(""), Reason::NoSni},
      {"two names", list(name + entry("evil.test")), Reason::BadRequest},
      {"the same name twice", list(name + name), Reason::BadRequest},
      {"another type", list(entry("api.ok.test", 1)), Reason::BadRequest},
      {"a name behind another type", list(entry("x", 1) + name), Reason::BadRequest},
      {"a list longer than the extension", u16(name.size() + 1) + name, Reason::BadRequest},
      {"a list shorter than the extension", u16(name.size() - 1) + name, Reason::BadRequest},
      {"a byte behind the list", list(name) + "x", Reason::BadRequest},
      {"a byte behind the entry", list(name + "x"), Reason::BadRequest},
      {"an entry without length", list("\0\0"s), Reason::BadRequest},
      {"an entry longer than the list",
       list("\0\0\x09"
            "api"s),
       Reason::BadRequest},
  };
  for (const auto& test : cases) {
    const auto host = parse_server_name(test.bytes);
    ASSERT_FALSE(host) << test.why;
    EXPECT_EQ(host.error().reason, test.reason) << test.why << ": " << host.error().detail;
  }
}

// ---- whole ClientHellos ----

using Outcome = std::expected<ClientHello, HandshakeRefusal>;

// What becomes of a connection's first bytes; nullopt: more are waited for.
std::optional<Outcome> read(const std::vector<std::string>& pieces) {
  HelloReader reader;
  std::string so_far;
  for (const std::string& piece : pieces) {
    const auto whole = reader.add(piece);
    so_far += piece;
    EXPECT_EQ(reader.raw(), so_far);
    if (!whole) return std::unexpected(HandshakeRefusal{whole.error(), ""});
    if (*whole) return parse_client_hello(reader.body());
  }
  return std::nullopt;
}

std::string text_of(const std::optional<Outcome>& outcome) {
  if (!outcome) return "waits";
  if (*outcome) return (*outcome)->host.str() + ((*outcome)->has_ech ? " with ECH" : "");
  return std::string(code(outcome->error().error.reason));
}

struct HelloCase {
  std::string_view why;
  std::string message;
  std::string outcome;
};

const std::vector<HelloCase>& hello_cases() {
  static const std::string kOk = sni("api.ok.test");
  static const std::string kBoth = versions({0x0304, 0x0303});
  static const std::vector<HelloCase> kCases{
      {"TLS 1.2", message(hello_body(kOk)), "api.ok.test"},
      {"TLS 1.3", message(hello_body(kOk + kBoth)), "api.ok.test"},
      {"TLS 1.3 alone", message(hello_body(kOk + versions({0x0304}))), "api.ok.test"},
      {"greased versions", message(hello_body(versions({0x7a7a, 0x0304}) + kOk)), "api.ok.test"},
      {"a version of the future", message(hello_body(kOk, 0x0304)), "api.ok.test"},
      {"another name", message(hello_body(sni("evil.test"))), "evil.test"},
      {"D1 a port", message(hello_body(sni("api.ok.test:443"))), "bad_request"},
      {"D3 upper case", message(hello_body(sni("API.OK.Test"))), "api.ok.test"},
      {"D4 a NUL", message(hello_body(sni("api.ok.test\0.evil.test"s))), "bad_request"},
      {"D5 two names", message(hello_body(extension(0, list(entry("api.ok.test") + entry("evil.test"))))),
       "bad_request"},
      {"D5 two extensions", message(hello_body(kOk + sni("evil.test"))), "bad_request"},
      {"D5 the same extension twice", message(hello_body(kOk + kBoth + kOk)), "bad_request"},
      {"D6 an address", message(hello_body(sni("127.0.0.1"))), "ip_literal"},
      {"D6 an address of IPv6", message(hello_body(sni("::1"))), "ip_literal"},
      {"D6 an address as a number", message(hello_body(sni("2130706433"))), "ip_literal"},
      {"D7 an empty name", message(hello_body(sni(""))), "no_sni"},
      {"D7 an empty list", message(hello_body(extension(0, list("")))), "no_sni"},
      {"D7 no server_name", message(hello_body(kBoth)), "no_sni"},
      {"D7 no extensions", message(hello_body("")), "no_sni"},
      {"D7 not even their length", message(hello_body("").substr(0, hello_body("").size() - 2)), "no_sni"},
      {"D7 an empty extension", message(hello_body(extension(0, ""))), "bad_request"},
      {"D8 a newline", message(hello_body(sni("api.ok.test\n"))), "bad_request"},
      {"D8 a space", message(hello_body(sni("api ok.test"))), "bad_request"},
      {"D8 a percent", message(hello_body(sni("api%2eok.test"))), "bad_request"},
      {"D8 a star", message(hello_body(sni("*.ok.test"))), "bad_request"},
      {"D12 ECH", message(hello_body(kOk + kBoth + extension(0xfe0d, std::string(200, 'e')))),
       "api.ok.test with ECH"},
      {"D12 empty ECH", message(hello_body(extension(0xfe0d, "") + kOk)), "api.ok.test with ECH"},
      {"D12 ECH twice", message(hello_body(kOk + extension(0xfe0d, "") + extension(0xfe0d, ""))),
       "bad_request"},
      {"D13 TLS 1.1", message(hello_body(kOk, 0x0302)), "not_tls"},
      {"D13 TLS 1.0", message(hello_body(kOk, 0x0301)), "not_tls"},
      {"D13 SSLv3", message(hello_body("", 0x0300)), "not_tls"},
      {"D13 SSLv2's number", message(hello_body(kOk, 0x0002)), "not_tls"},
      {"D13 old versions alone", message(hello_body(kOk + versions({0x0302, 0x0301}))), "not_tls"},
      {"D13 greased versions alone", message(hello_body(kOk + versions({0x7a7a}))), "not_tls"},
      {"no versions", message(hello_body(kOk + versions({}))), "not_tls"},
      {"half a version", message(hello_body(kOk + extension(43, "\x03\x03\x04\x03"))), "bad_request"},
      {"bytes behind the versions", message(hello_body(kOk + extension(43, "\x02\x03\x04\x03"))),
       "bad_request"},
      {"the name far behind", message(hello_body(extension(21, std::string(9000, '\0')) + kOk)),
       "api.ok.test"},
      {"an extension twice", message(hello_body(kOk + extension(21, "") + extension(21, ""))), "bad_request"},
      {"a byte behind the extensions", message(hello_body(kOk) + "x"), "bad_request"},
      {"an extension that is cut", message(hello_body(kOk + "\0\x15\0\x05x"s)), "bad_request"},
      {"half an extension's head", message(hello_body(kOk + "\0\x15\0"s)), "bad_request"},
      {"a long session id",
       message("\x03\x03" + std::string(32, 'r') + u8(33) + std::string(33, 's') + u16(2) + "\x13\x01" +
               u8(1) + u8(0) + list(kOk)),
       "bad_request"},
      {"no cipher", message("\x03\x03" + std::string(32, 'r') + u8(0) + u16(0) + u8(1) + u8(0) + list(kOk)),
       "bad_request"},
      {"half a cipher",
       message("\x03\x03" + std::string(32, 'r') + u8(0) + u16(1) + "\x13" + u8(1) + u8(0) + list(kOk)),
       "bad_request"},
      {"no compression",
       message("\x03\x03" + std::string(32, 'r') + u8(0) + u16(2) + "\x13\x01" + u8(0) + list(kOk)),
       "bad_request"},
      {"nothing at all", message(""), "bad_request"},
      {"a ServerHello", message(hello_body(kOk), 2), "not_tls"},
      {"D11 64 KiB", message(std::string(std::size_t{64} * 1024, 'x')), "too_large"},
      {"D11 a byte more than the limit", message(std::string(kMaxClientHelloBytes - 3, 'x')), "too_large"},
  };
  return kCases;
}

TEST(ClientHellos, AreReadTheSameHoweverTheyAreCut) {
  std::mt19937 random(1);
  for (const auto& test : hello_cases()) {
    for (const std::size_t largest_record : {std::size_t{3}, std::size_t{40}, std::size_t{16'384}}) {
      // The heads of records count too.
      if (test.message.size() / largest_record > 1000) continue;
      const std::string bytes = in_records(test.message, largest_record, random);
      for (const std::size_t largest_piece :
           {std::size_t{1}, std::size_t{7}, std::size_t{1500}, bytes.size()}) {
        EXPECT_EQ(text_of(read(cut(bytes, largest_piece, random))), test.outcome)
            << test.why << ", records to " << largest_record << ", pieces to " << largest_piece;
      }
    }
  }
}

// D9
TEST(ClientHellos, MayComeInRecordsOfOneByte) {
  std::mt19937 random(2);
  for (const std::string name : {"api.ok.test", "evil.test"}) {
    for (const std::string& hello : {message(hello_body(sni(name) + extension(21, std::string(400, '\0')))),
                                     client_hello_bytes({.sni = name}).substr(5)}) {
      const std::string bytes = in_records(hello, 1, random);
      EXPECT_EQ(text_of(read(cut(bytes, 1, random))), name);
      EXPECT_EQ(text_of(read({bytes})), name);
    }
  }
}

TEST(ClientHellos, AreNothingWhileAByteIsMissing) {
  const std::string body = hello_body(sni("api.ok.test") + versions({0x0304}));
  const std::string bytes = record(message(body));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(text_of(read({bytes.substr(0, size)})), "waits") << size;
  }
  for (std::size_t size = 0; size < body.size(); ++size) {
    const auto hello = parse_client_hello(std::string_view(body).substr(0, size));
    EXPECT_FALSE(hello) << size;
  }
}

TEST(ClientHellos, LeaveWhatComesBehindThem) {
  const std::string hello = record(message(hello_body(sni("api.ok.test"))));
  HelloReader reader;
  EXPECT_TRUE(*reader.add(hello + "\x14\x03\x03\0\x01\x01 and more"s));
  EXPECT_EQ(parse_client_hello(reader.body())->host.str(), "api.ok.test");
  EXPECT_EQ(reader.take_raw(), hello + "\x14\x03\x03\0\x01\x01 and more"s);
}

TEST(ClientHellos, MayBeAsLargeAsTheLimit) {
  const std::string small = record(message(hello_body(sni("api.ok.test") + extension(21, ""))));
  const std::string padding(kMaxClientHelloBytes - small.size(), '\0');
  EXPECT_EQ(text_of(read({record(message(hello_body(sni("api.ok.test") + extension(21, padding))))})),
            "api.ok.test");
  EXPECT_EQ(text_of(read({record(message(hello_body(sni("api.ok.test") + extension(21, padding + '\0'))))})),
            "too_large");
}

// By the fewest bytes that tell: a client that waits for the server to speak first shall not wait long.
TEST(ClientHellos, RefusesOtherRecords) {
  const std::string hello = message(hello_body(sni("api.ok.test")));
  struct RecordCase {
    std::string_view why;
    std::string bytes;
    std::string outcome;
  };
  const std::vector<RecordCase> cases{
      {"SSH", "S", "not_tls"},
      {"HTTP", "G", "not_tls"},
      {"HTTP/2", "P", "not_tls"},
      {"a zero", "\0"s, "not_tls"},
      {"data", "\x17", "not_tls"},
      {"an alert", "\x15", "not_tls"},
      {"D13 SSLv2", "\x80\x2e\x01\x03\x03"s, "not_tls"},
      {"D13 SSLv2 with padding", "\x00\x2e\x00\x01\x03\x03"s, "not_tls"},
      {"D13 a record of SSLv3", "\x16\x03\0"s, "not_tls"},
      {"a record of TLS 1.4", "\x16\x03\x04"s, "not_tls"},
      {"a record of DTLS", "\x16\xfe"s, "not_tls"},
      {"a record of TLS 1.0", record(hello, 0x0301), "api.ok.test"},
      {"a record of TLS 1.1", record(hello, 0x0302), "api.ok.test"},
      {"a record of TLS 1.2", record(hello, 0x0303), "api.ok.test"},
      {"a record longer than any", "\x16\x03\x01\xff\xff"s, "too_large"},
      {"an empty record", record(""), "bad_request"},
      {"an empty record between", record(hello.substr(0, 9)) + record("") + record(hello.substr(9)),
       "bad_request"},
      {"an alert between", record(hello.substr(0, 9)) + "\x15", "bad_request"},
      {"SSLv3 between", record(hello.substr(0, 9)) + "\x16\x03\0"s, "not_tls"},
      {"a byte behind it in its record", record(hello + "x"), "bad_request"},
      {"another ClientHello behind it", record(hello + hello), "bad_request"},
      {"64 KiB by its first record", record("\x01\x01\0\0"s), "too_large"},
  };
  for (const auto& test : cases) EXPECT_EQ(text_of(read({test.bytes})), test.outcome) << test.why;
}

TEST(ClientHellos, RefusedForTheirVersionStillTellTheName) {
  const auto hello = parse_client_hello(hello_body(sni("api.ok.test"), 0x0301));
  ASSERT_FALSE(hello);
  EXPECT_EQ(hello.error().host, "api.ok.test");
}

}  // namespace
}  // namespace sallyport::egress
