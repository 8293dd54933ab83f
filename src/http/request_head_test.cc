#include "http/request_head.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "http/limits.h"

namespace sallyport::http {
namespace {

using namespace std::string_literals;

std::string get(const std::string& more) {
  return "GET /a HTTP/1.1\r\nHost: ok.test\r\n" + more + "\r\n";
}
std::string post(const std::string& more) {
  return "POST /a HTTP/1.1\r\nHost: ok.test\r\n" + more + "\r\n";
}
Result<RequestHead> parse(const std::string& bytes) {
  return parse_request_head(bytes, 443);
}

TEST(RequestHead, ReadsWhatGitSends) {
  const auto head = parse(
      "POST /acme/widget/git-upload-pack HTTP/1.1\r\nHost: Forge.Test.:8443\r\nUser-Agent: git/2.39.5\r\n"
      "Accept-Encoding: deflate, gzip\r\nContent-Type: application/x-git-upload-pack-request\r\n"
      "Git-Protocol: version=2\r\nContent-Length: 165\r\n\r\n");
  ASSERT_TRUE(head) << head.error().detail;
  EXPECT_EQ(head->method, "POST");
  EXPECT_EQ(head->target, "/acme/widget/git-upload-pack");
  EXPECT_EQ(head->host.host.str(), "forge.test");
  EXPECT_EQ(head->host.port, 8443);
  EXPECT_EQ(head->body, BodyKind::Declared);
  EXPECT_EQ(head->body_bytes, 165U);
  EXPECT_EQ(head->persistence, Persistence::KeepAlive);
  EXPECT_FALSE(head->expects_continue);
  EXPECT_EQ(head->single("git-protocol").value(), "version=2");
  EXPECT_EQ(head->single("cookie").value(), "");
  EXPECT_EQ(head->fields.size(), 6U);
}

TEST(RequestHead, ReadsFramingPersistenceAndExpectation) {
  const auto head =
      parse(post("Transfer-Encoding: chunked\r\nExpect: 100-continue\r\nConnection: x, Close\r\n"));
  ASSERT_TRUE(head) << head.error().detail;
  EXPECT_EQ(head->host.port, 443);
  EXPECT_EQ(head->body, BodyKind::Chunked);
  EXPECT_EQ(head->persistence, Persistence::Close);
  EXPECT_TRUE(head->expects_continue);
}

TEST(RequestHead, TakesALengthOfZeroForNoBodyWhereNoneIsAllowed) {
  EXPECT_EQ(parse(get("Content-Length: 0\r\n")).value().body, BodyKind::None);
  EXPECT_EQ(parse(post("Content-Length: 0\r\n")).value().body, BodyKind::Declared);
  EXPECT_EQ(parse(post("")).value().body, BodyKind::None);
}

TEST(RequestHead, TellsWhenAFieldThatMayComeOnceCameTwice) {
  const auto head = parse(post("Content-Type: a\r\nContent-Type: a\r\n"));
  ASSERT_TRUE(head);
  EXPECT_EQ(head->single("content-type").error().reason, Reason::BadRequest);
}

struct Malformed {
  std::string what;
  std::string bytes;
  Reason reason = Reason::BadRequest;
};

class RequestHeadRefuses : public ::testing::TestWithParam<Malformed> {};

TEST_P(RequestHeadRefuses, It) {
  const auto head = parse(GetParam().bytes);
  ASSERT_FALSE(head) << GetParam().what;
  EXPECT_EQ(head.error().reason, GetParam().reason) << GetParam().what << ": " << head.error().detail;
}

std::vector<Malformed> framing_cases() {
  std::vector<Malformed> cases{
      {"CL then TE", post("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n")},
      {"TE then CL", post("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n")},
      {"two TE", post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n")},
      {"two equal CL", post("Content-Length: 1\r\nContent-Length: 1\r\n")},
      {"two differing CL", post("Content-Length: 1\r\ncontent-length: 2\r\n")},
      {"GET with a length", get("Content-Length: 1\r\n")},
      {"GET with chunks", get("Transfer-Encoding: chunked\r\n")},
      {"DELETE with a length", "DELETE /a HTTP/1.1\r\nHost: ok.test\r\nContent-Length: 1\r\n\r\n"},
      {"HEAD with a length", "HEAD /a HTTP/1.1\r\nHost: ok.test\r\nContent-Length: 1\r\n\r\n"},
  };
  for (const std::string& coding : {"gzip"s, "xchunked"s, "chunked, gzip"s, "gzip, chunked"s, "\"chunked\""s,
                                    ",chunked"s, "chunked,"s, "chunked;q=1"s,
                                    "\x0b"
                                    "chunked"s,
                                    "\xa0"
                                    "chunked"s,
                                    "chunked\x80"s, "identity"s, ""s, "chunked chunked"s}) {
    cases.push_back({"TE " + coding, post("Transfer-Encoding: " + coding + "\r\n")});
  }
  for (const std::string& length : {"1, 1"s, "+1"s, "-1"s, "0x1"s, "1 1"s, "010"s, "00"s, ""s, "1_0"s, "1.0"s,
                                    "99999999999999999999"s, "18446744073709551616"s, "\xd9\xa1"s}) {
    cases.push_back({"CL " + length, post("Content-Length: " + length + "\r\n")});
  }
  return cases;
}

std::vector<Malformed> line_cases() {
  std::vector<Malformed> cases{
      {"obs-fold", get("X: a\r\n b\r\n")},
      {"obs-fold by tab", get("X: a\r\n\tb\r\n")},
      {"obs-fold of TE", post("Transfer-Encoding:\r\n chunked\r\n")},
      {"obs-fold before the first field", "GET /a HTTP/1.1\r\n Host: ok.test\r\n\r\n"},
      {"bare LF everywhere", "GET /a HTTP/1.1\nHost: ok.test\n\n"},
      {"bare LF at one line", "GET /a HTTP/1.1\r\nHost: ok.test\n\r\n"},
      {"bare LF as blank line", "GET /a HTTP/1.1\r\nHost: ok.test\r\n\n"},
      {"bare CR in a value", get("X: a\rb\r\n")},
      {"bare CR in a name", get("X\rY: a\r\n")},
      {"two CR", "GET /a HTTP/1.1\r\r\nHost: ok.test\r\n\r\n"},
      {"NUL in a value", get("X: a\0b\r\n"s)},
      {"NUL in a name", get("X\0: a\r\n"s)},
      {"NUL in the target", "GET /a\0 HTTP/1.1\r\nHost: ok.test\r\n\r\n"s},
      {"DEL in a value", get("X: a\x7f\r\n")},
      {"control in a value", get("X: a\x01\r\n")},
      {"8 bit in a name", get("X\x80: a\r\n")},
      {"space before the colon", get("X : a\r\n")},
      {"tab before the colon", get("Content-Length\t: 1\r\n")},
      {"no name", get(": a\r\n")},
      {"no colon", get("X\r\n")},
      {"empty line before the request", "\r\n" + get("")},
      {"bytes behind the head", get("") + "x"},
      {"no end", "GET /a HTTP/1.1\r\nHost: ok.test\r\n"},
      {"nothing", ""},
      {"malformed Connection", get("Connection: close;x\r\n")},
      {"other expectation", post("Content-Length: 1\r\nExpect: 200-ok\r\n"), Reason::ExpectationFailed},
      {"two expectations", post("Content-Length: 1\r\nExpect: 100-continue\r\nExpect: 100-continue\r\n"),
       Reason::ExpectationFailed},
  };
  for (const std::string& line : {"GET /"s,
                                  "GET / HTTP/1.0"s,
                                  "GET / HTTP/1.2"s,
                                  "GET / HTTP/2.0"s,
                                  "GET / HTTP/0.9"s,
                                  "GET / http/1.1"s,
                                  "GET / HTTP/1.1 "s,
                                  " GET / HTTP/1.1"s,
                                  "GET  / HTTP/1.1"s,
                                  "GET /  HTTP/1.1"s,
                                  "GET\t/\tHTTP/1.1"s,
                                  "GET /a b HTTP/1.1"s,
                                  "get / HTTP/1.1"s,
                                  "G=\" / HTTP/1.1"s,
                                  "TRACE / HTTP/1.1"s,
                                  "TRACK / HTTP/1.1"s,
                                  "CONNECT ok.test:443 HTTP/1.1"s,
                                  "PRI * HTTP/2.0"s,
                                  "OPTIONS * HTTP/1.1"s,
                                  "GET http://ok.test/ HTTP/1.1"s,
                                  "GET https://ok.test/ HTTP/1.1"s,
                                  "GET ok.test HTTP/1.1"s,
                                  "GET a HTTP/1.1"s,
                                  "GET /a#b HTTP/1.1"s,
                                  "GET /a\\b HTTP/1.1"s,
                                  "GET /\x80 HTTP/1.1"s,
                                  "GET /\x7f HTTP/1.1"s,
                                  "GET /\x01 HTTP/1.1"s,
                                  "SSH-2.0-x"s,
                                  "GET / HTTP/1.1\x0b"s}) {
    cases.push_back({line, line + "\r\nHost: ok.test\r\n\r\n"});
  }
  return cases;
}

std::vector<Malformed> host_cases() {
  std::vector<Malformed> cases{
      {"no Host", "GET /a HTTP/1.1\r\n\r\n"},
      {"two Hosts", get("Host: ok.test\r\n")},
      {"two differing Hosts", get("hOST: evil.test\r\n")},
  };
  for (const std::string& host :
       {""s, "ok.test, evil.test"s, "ok.test/"s, "u@ok.test"s, "ok.test:"s, "ok.test:0"s, "ok.test:65536"s,
        "ok.test:+1"s, "ok..test"s, "ok.test.."s, "ok%2etest"s, "ok test"s, "localhost"s}) {
    cases.push_back({"Host " + host, "GET /a HTTP/1.1\r\nHost: " + host + "\r\n\r\n"});
  }
  for (const std::string& host : {"127.0.0.1"s, "127.1"s, "2130706433"s, "0x7f.1"s, "[::1]"s}) {
    cases.push_back({"Host " + host, "GET /a HTTP/1.1\r\nHost: " + host + "\r\n\r\n", Reason::IpLiteral});
  }
  return cases;
}

std::vector<Malformed> limit_cases() {
  std::string fields;
  for (std::size_t i = 0; i < kMaxFields; ++i) fields += "X: a\r\n";
  std::string big;
  for (int i = 0; i < 5; ++i) big += "X: " + std::string(7000, 'a') + "\r\n";
  return {
      {"target", "GET /" + std::string(kMaxTargetBytes, 'a') + " HTTP/1.1\r\nHost: ok.test\r\n\r\n",
       Reason::TargetTooLong},
      {"request line", "GET /" + std::string(kMaxLineBytes, 'a') + " HTTP/1.1\r\nHost: ok.test\r\n\r\n",
       Reason::TargetTooLong},
      {"field line", get("X: " + std::string(kMaxLineBytes, 'a') + "\r\n"), Reason::HeadTooLarge},
      {"fields", get(fields), Reason::HeadTooLarge},
      {"head", get(big), Reason::HeadTooLarge},
  };
}

INSTANTIATE_TEST_SUITE_P(Framing, RequestHeadRefuses, ::testing::ValuesIn(framing_cases()));
INSTANTIATE_TEST_SUITE_P(Lines, RequestHeadRefuses, ::testing::ValuesIn(line_cases()));
INSTANTIATE_TEST_SUITE_P(Hosts, RequestHeadRefuses, ::testing::ValuesIn(host_cases()));
INSTANTIATE_TEST_SUITE_P(Limits, RequestHeadRefuses, ::testing::ValuesIn(limit_cases()));

TEST(RequestHead, TakesEverythingUpToItsLimits) {
  std::string fields;
  for (std::size_t i = 0; i + 1 < kMaxFields; ++i) fields += "X: a\r\n";
  EXPECT_TRUE(parse(get(fields)));
  EXPECT_TRUE(parse("GET /" + std::string(kMaxTargetBytes - 1, 'a') + " HTTP/1.1\r\nHost: ok.test\r\n\r\n"));
  EXPECT_TRUE(parse(get("X: " + std::string(kMaxLineBytes - 3, 'a') + "\r\n")));
}

TEST(HeadScanner, RefusesAtOnceWhatCannotBecomeAHead) {
  for (const std::string bytes : {"SSH-2.0-OpenSSH\r\n", "GET / HTTP/1.1\n", "\x16\x03\x01\r\n", "\n"}) {
    HeadScanner scanner;
    const auto size = scanner.scan(bytes);
    ASSERT_FALSE(size) << bytes;
    EXPECT_EQ(size.error().reason, Reason::BadRequest);
  }
}

TEST(HeadScanner, RefusesAHeadThatNeverEnds) {
  HeadScanner scanner;
  std::string bytes = "GET / HTTP/1.1\r\n";
  Result<std::optional<std::size_t>> size = std::nullopt;
  while (size && bytes.size() <= 2 * kMaxHeadBytes) {
    bytes += "X: " + std::string(1000, 'a') + "\r\n";
    size = scanner.scan(bytes);
  }
  ASSERT_FALSE(size);
  EXPECT_EQ(size.error().reason, Reason::HeadTooLarge);
  EXPECT_LE(bytes.size(), kMaxHeadBytes + 1005);
}

}  // namespace
}  // namespace sallyport::http
