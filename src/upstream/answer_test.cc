#include "upstream/answer.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "upstream/answers_file_test.h"
#include "upstream/limits.h"

namespace sallyport::upstream {
namespace {

struct Outcome {
  std::optional<AnswerHead> head;
  std::string body;
  std::string rest;  // behind the answer
  std::optional<Reason> failure;
  bool ended = false;
  bool reusable = false;
};

// Feeds pieces of that size, then the orderly end of the connection.
Outcome frame(std::string_view in, std::size_t piece, const Asked& asked = {}) {
  AnswerFramer framer(asked);
  Outcome out;
  std::size_t at = 0;
  while (at < in.size() && !framer.ended()) {
    const auto step = framer.feed(in.substr(at, piece));
    if (!step) {
      out.failure = step.error().reason;
      return out;
    }
    at += step->consumed;
    out.body += step->data;
    if (step->event == AnswerFramer::Event::Head) out.head = framer.take_head();
  }
  out.rest = in.substr(at);
  if (const auto status = framer.end_of_input(); !status) out.failure = status.error().reason;
  out.ended = framer.ended();
  out.reusable = framer.reusable();
  return out;
}

// `head` is with LF line ends, for the eye.
std::string crlf(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n') out += '\r';
    out += c;
  }
  return out;
}

TEST(Answer, IsFramedTheSameHoweverItIsCut) {
  const struct {
    const char* what;
    std::string in;
    std::string body, rest;
    int status;
    bool reusable;
  } cases[] = {
      {"declared length", crlf("HTTP/1.1 200 OK\nContent-Length: 5\n\nhello"), "hello", "", 200, true},
      {"length with something behind", crlf("HTTP/1.1 200 OK\nContent-Length: 2\n\nhello"), "he", "llo", 200,
       true},
      {"empty", crlf("HTTP/1.1 404 Not Found\nContent-Length: 0\n\n"), "", "", 404, true},
      {"chunked", crlf("HTTP/1.1 200 OK\nTransfer-Encoding: Chunked\n\n3\nabc\n2\nde\n0\n\nX"), "abcde", "X",
       200, true},
      {"until close", crlf("HTTP/1.1 200 OK\n\nall of it"), "all of it", "", 200, false},
      {"until close, nothing", crlf("HTTP/1.1 200 OK\n\n"), "", "", 200, false},
      {"Connection: close", crlf("HTTP/1.1 200 OK\nConnection: foo, Close\nContent-Length: 1\n\na"), "a", "",
       200, false},
      {"no words", crlf("HTTP/1.1 200\nContent-Length: 1\n\na"), "a", "", 200, true},
      {"204", crlf("HTTP/1.1 204 No Content\n\nHTTP/1.1"), "", "HTTP/1.1", 204, true},
      {"204 that says 0", crlf("HTTP/1.1 204 No Content\nContent-Length: 0\n\n"), "", "", 204, true},
      {"304 with a length", crlf("HTTP/1.1 304 Not Modified\nContent-Length: 5\n\nhello"), "", "hello", 304,
       true},
      {"1.0 with a length", crlf("HTTP/1.0 200 OK\nContent-Length: 1\n\na"), "a", "", 200, false},
      {"1.0 until close", crlf("HTTP/1.0 200 OK\n\nabc"), "abc", "", 200, false},
      {"1.0 that would stay", crlf("HTTP/1.0 200 OK\nConnection: keep-alive\nContent-Length: 1\n\na"), "a",
       "", 200, false},
      {"interim answers",
       crlf("HTTP/1.1 100 Continue\n\nHTTP/1.1 103 Early Hints\nLink: </x>\n\n"
            "HTTP/1.1 200 OK\nContent-Length: 1\n\na"),
       "a", "", 200, true},
  };
  for (const auto& c : cases) {
    for (std::size_t piece = 1; piece <= c.in.size(); ++piece) {
      const Outcome out = frame(c.in, piece);
      ASSERT_FALSE(out.failure) << c.what << " cut at " << piece;
      ASSERT_TRUE(out.head) << c.what;
      EXPECT_EQ(out.head->status, c.status) << c.what;
      EXPECT_EQ(out.body, c.body) << c.what;
      EXPECT_EQ(out.rest, c.rest) << c.what;
      EXPECT_TRUE(out.ended) << c.what;
      EXPECT_EQ(out.reusable, c.reusable) << c.what;
    }
  }
}

TEST(Answer, RefusesEverySecondReading) {
  const struct {
    const char* what;
    std::string in;
  } cases[] = {
      {"length and chunked", crlf("HTTP/1.1 200 OK\nContent-Length: 5\nTransfer-Encoding: chunked\n\n0\n\n")},
      {"chunked and length", crlf("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\nContent-Length: 5\n\n0\n\n")},
      {"two lengths", crlf("HTTP/1.1 200 OK\nContent-Length: 5\nContent-Length: 6\n\nhello")},
      {"twice the same length", crlf("HTTP/1.1 200 OK\nContent-Length: 5\nContent-Length: 5\n\nhello")},
      {"a list of lengths", crlf("HTTP/1.1 200 OK\nContent-Length: 5, 5\n\nhello")},
      {"+1", crlf("HTTP/1.1 200 OK\nContent-Length: +1\n\nh")},
      {"0x1", crlf("HTTP/1.1 200 OK\nContent-Length: 0x1\n\nh")},
      {"010", crlf("HTTP/1.1 200 OK\nContent-Length: 010\n\nhellohello")},
      {"no length", crlf("HTTP/1.1 200 OK\nContent-Length:\n\n")},
      {"20 digits", crlf("HTTP/1.1 200 OK\nContent-Length: 99999999999999999999\n\nh")},
      {"2^63", crlf("HTTP/1.1 200 OK\nContent-Length: 9223372036854775808\n\nh")},
      {"gzip", crlf("HTTP/1.1 200 OK\nTransfer-Encoding: gzip\n\n")},
      {"chunked, gzip", crlf("HTTP/1.1 200 OK\nTransfer-Encoding: chunked, gzip\n\n")},
      {"gzip, chunked", crlf("HTTP/1.1 200 OK\nTransfer-Encoding: gzip, chunked\n\n")},
      {"chunked twice", crlf("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\nTransfer-Encoding: chunked\n\n")},
      {"xchunked", crlf("HTTP/1.1 200 OK\nTransfer-Encoding: xchunked\n\n")},
      {"quoted chunked", crlf("HTTP/1.1 200 OK\nTransfer-Encoding: \"chunked\"\n\n")},
      {"vertical tab", crlf("HTTP/1.1 200 OK\nTransfer-Encoding: \x0b"
                            "chunked\n\n")},
      {"chunked and a byte", crlf("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\x80\n\n")},
      {"chunked in 1.0", crlf("HTTP/1.0 200 OK\nTransfer-Encoding: chunked\n\n0\n\n")},
      {"204 with a body", crlf("HTTP/1.1 204 No Content\nContent-Length: 5\n\nhello")},
      {"204 chunked", crlf("HTTP/1.1 204 No Content\nTransfer-Encoding: chunked\n\n0\n\n")},
      {"interim with a body", crlf("HTTP/1.1 100 Continue\nContent-Length: 5\n\nhello")},
      {"101", crlf("HTTP/1.1 101 Switching Protocols\nUpgrade: x\nConnection: upgrade\n\n")},
      {"folded line", crlf("HTTP/1.1 200 OK\nX: a\n b\nContent-Length: 0\n\n")},
      {"folded first line", crlf("HTTP/1.1 200 OK\n X: a\n\n")},
      {"bare LF", "HTTP/1.1 200 OK\nContent-Length: 0\n\n"},
      {"bare LF in a value", "HTTP/1.1 200 OK\r\nX: a\nb: c\r\n\r\n"},
      {"bare CR in a value", "HTTP/1.1 200 OK\r\nX: a\rb\r\n\r\n"},
      {"CR CR LF", "HTTP/1.1 200 OK\r\r\n\r\n"},
      {"NUL", std::string("HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\n", 27)},
      {"control byte", crlf("HTTP/1.1 200 OK\nX: a\x01\n\n")},
      {"DEL", crlf("HTTP/1.1 200 OK\nX: a\x7f\n\n")},
      {"space before the colon", crlf("HTTP/1.1 200 OK\nContent-Length : 0\n\n")},
      {"no name", crlf("HTTP/1.1 200 OK\n: x\n\n")},
      {"no colon", crlf("HTTP/1.1 200 OK\nContent-Length 0\n\n")},
      {"a name of bytes", crlf("HTTP/1.1 200 OK\nX\x80: a\n\n")},
      {"HTTP/0.9", crlf("hello, this is no head\n\n")},
      {"HTTP/1.2", crlf("HTTP/1.2 200 OK\nContent-Length: 0\n\n")},
      {"HTTP/2", crlf("HTTP/2 200 OK\nContent-Length: 0\n\n")},
      {"lower case", crlf("http/1.1 200 OK\nContent-Length: 0\n\n")},
      {"space in front", crlf(" HTTP/1.1 200 OK\nContent-Length: 0\n\n")},
      {"line end in front", crlf("\nHTTP/1.1 200 OK\nContent-Length: 0\n\n")},
      {"two spaces", crlf("HTTP/1.1  200 OK\nContent-Length: 0\n\n")},
      {"tab", crlf("HTTP/1.1\t200 OK\nContent-Length: 0\n\n")},
      {"two digits", crlf("HTTP/1.1 20 OK\nContent-Length: 0\n\n")},
      {"four digits", crlf("HTTP/1.1 2000 OK\nContent-Length: 0\n\n")},
      {"status 099", crlf("HTTP/1.1 099 OK\nContent-Length: 0\n\n")},
      {"status 600", crlf("HTTP/1.1 600 OK\nContent-Length: 0\n\n")},
      {"status +20", crlf("HTTP/1.1 +20 OK\nContent-Length: 0\n\n")},
      {"garbage behind the status", crlf("HTTP/1.1 200OK\nContent-Length: 0\n\n")},
      {"bad chunk", crlf("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n1;x\na\n0\n\n")},
  };
  for (const auto& c : cases) {
    for (std::size_t piece = 1; piece <= c.in.size(); ++piece) {
      EXPECT_EQ(frame(c.in, piece).failure, Reason::UpstreamMalformed) << c.what << " cut at " << piece;
    }
  }
}

// Every size of piece for what is short, and for what is long those that meet each line end.
std::vector<std::size_t> cuts_of(std::size_t bytes) {
  constexpr std::size_t kShort = 600;
  std::vector<std::size_t> cuts;
  for (std::size_t piece = 1; bytes <= kShort && piece <= bytes; ++piece) cuts.push_back(piece);
  if (bytes > kShort || bytes == 0) cuts = {1, 2, 3, 1000, 16384, bytes + 1};
  return cuts;
}

TEST(Answer, EachOfTheFileHasItsOutcomeHoweverItIsCut) {
  using test::Expected;
  for (const test::AnswerCase& c : test::answers_file()) {
    const bool whole = c.expected == Expected::Whole || c.expected == Expected::Last;
    const bool cut = c.expected == Expected::CutMalformed || c.expected == Expected::CutTruncated;
    const Reason failure = test::reason_of(c.expected);
    // What only TLS tells: an end without close_notify.
    if (c.end == test::PeerEnd::Fin && c.bytes.find("Content-Length") == std::string::npos) continue;
    for (const std::size_t piece : cuts_of(c.bytes.size())) {
      const Outcome out = frame(c.bytes, piece);
      EXPECT_EQ(out.failure.value_or(Reason::None), failure) << c.name << " cut at " << piece;
      EXPECT_EQ(out.head.has_value(), whole || cut) << c.name << " cut at " << piece;
      EXPECT_EQ(out.reusable && out.rest.empty(), c.expected == Expected::Whole)
          << c.name << " cut at " << piece;
    }
  }
}

TEST(Answer, ACutIsNeverACleanEnd) {
  const std::string whole[] = {
      crlf("HTTP/1.1 200 OK\nContent-Length: 5\n\nhello"),
      crlf("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n5\nhello\n0\nA: b\n\n"),
      crlf("HTTP/1.1 100 Continue\n\nHTTP/1.1 204 No Content\n\n"),
  };
  for (const std::string& in : whole) {
    ASSERT_FALSE(frame(in, in.size()).failure);
    EXPECT_EQ(frame("", 1).failure, Reason::UpstreamClosed);
    for (std::size_t length = 1; length < in.size(); ++length) {
      EXPECT_EQ(frame(std::string_view(in).substr(0, length), length).failure, Reason::UpstreamTruncated)
          << in.substr(0, length);
    }
  }
}

TEST(Answer, DropsWhatIsOfOneConnectionOnly) {
  const auto out = frame(crlf("HTTP/1.1 200 OK\nContent-Type: a/b\nConnection: Keep-Alive, X-Hop\n"
                              "Keep-Alive: timeout=5\nX-Hop: 1\nUpgrade: h2c\nProxy-Authenticate: Basic\n"
                              "TE: trailers\nTrailer: X-Sum\nSet-Cookie: a\nSet-Cookie: b\n"
                              "Content-Length: 0\n\n"),
                         1000);
  ASSERT_TRUE(out.head);
  std::vector<std::string> names;
  for (const Header& header : out.head->headers) names.push_back(header.name);
  EXPECT_EQ(names, (std::vector<std::string>{"content-type", "set-cookie", "set-cookie"}));
  EXPECT_EQ(out.head->body_bytes, 0U);
  EXPECT_EQ(out.head->header("content-type"), "a/b");
  EXPECT_EQ(out.head->header("x-hop"), "");
  EXPECT_TRUE(out.reusable);
}

TEST(Answer, LimitsTheHead) {
  const std::string start = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: ";
  const auto head_of = [&](std::size_t bytes) {
    return start + std::string(bytes - start.size() - 4, 'v') + "\r\n\r\n";
  };
  EXPECT_FALSE(frame(head_of(kMaxAnswerHeadBytes), 4096).failure);
  EXPECT_EQ(frame(head_of(kMaxAnswerHeadBytes + 1), 4096).failure, Reason::UpstreamMalformed);
  // Without an end it is refused too, not kept for ever.
  EXPECT_EQ(frame(start + std::string(kMaxAnswerHeadBytes, 'v'), 4096).failure, Reason::UpstreamMalformed);
}

TEST(Answer, LimitsTheFields) {
  const auto with_fields = [](std::size_t count) {
    std::string in = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n";
    for (std::size_t i = 1; i < count; ++i) in += "X: y\r\n";
    return in + "\r\n";
  };
  EXPECT_FALSE(frame(with_fields(kMaxAnswerFields), 4096).failure);
  EXPECT_EQ(frame(with_fields(kMaxAnswerFields + 1), 4096).failure, Reason::UpstreamMalformed);
}

TEST(Answer, LimitsInterimAnswers) {
  const auto with_interim = [](int count) {
    std::string in;
    for (int i = 0; i < count; ++i) in += "HTTP/1.1 100 Continue\r\n\r\n";
    return in + "HTTP/1.1 204 No Content\r\n\r\n";
  };
  EXPECT_FALSE(frame(with_interim(kMaxInterimAnswers), 4096).failure);
  EXPECT_EQ(frame(with_interim(kMaxInterimAnswers + 1), 4096).failure, Reason::UpstreamMalformed);
}

TEST(Answer, ToHeadHasNoBodyWhateverItSays) {
  const struct {
    const char* text;
    std::optional<std::uint64_t> length;
  } cases[] = {
      {"HTTP/1.1 200 OK\nContent-Length: 5\n\n", 5},
      {"HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n", std::nullopt},
      {"HTTP/1.1 404 Not Found\n\n", std::nullopt},
      {"HTTP/1.1 100 Continue\n\nHTTP/1.1 200 OK\nContent-Length: 0\n\n", 0},
      {"HTTP/1.1 304 Not Modified\nContent-Length: 5\n\n", 5},
  };
  for (const auto& c : cases) {
    for (const std::size_t piece : {std::size_t{1}, std::size_t{4096}}) {
      const Outcome out = frame(crlf(c.text) + "rest", piece, {.head = true});
      ASSERT_TRUE(out.head) << c.text;
      EXPECT_EQ(out.head->body_bytes, c.length) << c.text;
      EXPECT_TRUE(out.ended && out.reusable) << c.text;
      EXPECT_EQ(out.body, "") << c.text;
      EXPECT_EQ(out.rest, "rest") << c.text;
    }
  }
  EXPECT_EQ(
      frame(crlf("HTTP/1.1 200 OK\nContent-Length: 5\nTransfer-Encoding: chunked\n\n"), 4096, {.head = true})
          .failure,
      Reason::UpstreamMalformed);
}

TEST(Answer, SwitchesProtocolsOnlyAsAsked) {
  const std::string good = crlf(
      "HTTP/1.1 100 Continue\n\nHTTP/1.1 101 Switching Protocols\nUpgrade: WebSocket\n"
      "Connection: keep-alive, Upgrade\nSec-WebSocket-Accept: x\n\n");
  for (const std::size_t piece : {std::size_t{1}, std::size_t{4096}}) {
    const Outcome out = frame(good + "early", piece, {.head = false, .upgrade = "websocket"});
    ASSERT_TRUE(out.head);
    EXPECT_EQ(out.head->status, 101);
    ASSERT_EQ(out.head->headers.size(), 1U);
    EXPECT_EQ(out.head->header("sec-websocket-accept"), "x");
    EXPECT_EQ(out.rest, "early");
    EXPECT_FALSE(out.reusable);
    EXPECT_EQ(frame(good, piece).failure, Reason::UpstreamMalformed);
  }
  for (const char* fields :
       {"", "Connection: Upgrade\n", "Upgrade: websocket\n", "Upgrade: h2c\nConnection: Upgrade\n",
        "Upgrade: websocket\nUpgrade: h2c\nConnection: Upgrade\n",
        "Upgrade: websocket, h2c\nConnection: Upgrade\n",
        "Upgrade: websocket\nConnection: Upgrade\nContent-Length: 5\n",
        "Upgrade: websocket\nConnection: Upgrade\nTransfer-Encoding: chunked\n"}) {
    const std::string in = crlf("HTTP/1.1 101 Switching Protocols\n" + std::string(fields) + "\n");
    EXPECT_EQ(frame(in, 4096, {.head = false, .upgrade = "websocket"}).failure, Reason::UpstreamMalformed)
        << fields;
  }
  const Outcome refused =
      frame(crlf("HTTP/1.1 200 OK\nContent-Length: 2\n\nno"), 4096, {.head = false, .upgrade = "websocket"});
  EXPECT_EQ(refused.body, "no");
  EXPECT_TRUE(refused.reusable);
}

TEST(Answer, PassesOnNothingOfOneConnectionAndNoOtherWay) {
  const Outcome out =
      frame(crlf("HTTP/1.1 200 OK\nConnection: X-Private\nX-Private: 1\nKeep-Alive: 2\nAlt-Svc: h3\n"
                 "Proxy-Authenticate: Basic\nProxy-Status: x\nTE: x\nTrailer: y\nUpgrade: h2c\n"
                 "Content-Length: 0\nSet-Cookie: a\nSet-Cookie: b\n\n"),
            4096);
  ASSERT_TRUE(out.head);
  ASSERT_EQ(out.head->headers.size(), 2U);
  EXPECT_EQ(out.head->headers[0].value, "a");
  EXPECT_EQ(out.head->headers[1].value, "b");
}

TEST(Answer, BodyBytesAreNotCopied) {
  AnswerFramer framer;
  const std::string in = crlf("HTTP/1.1 200 OK\nContent-Length: 5\n\nhello");
  const auto head = framer.feed(in);
  ASSERT_TRUE(head);
  const auto rest = std::string_view(in).substr(head->consumed);
  const auto data = framer.feed(rest);
  ASSERT_TRUE(data);
  EXPECT_EQ(data->data.data(), rest.data());
}

// An upstream that got a credential could have it written into the audit log.
TEST(Answer, QuotesNoByteOfTheUpstreamInAnError) {
  for (const char* head : {
           "the-credential 200 OK\n\n",
           "HTTP/1.1 the-credential\n\n",
           "HTTP/1.1 200 OK\nthe-credential\n\n",
           "HTTP/1.1 200 OK\nX: the-credential\x01\n\n",
           "HTTP/1.1 200 OK\nContent-Length: the-credential\n\n",
           "HTTP/1.1 200 OK\nTransfer-Encoding: the-credential\n\n",
           "HTTP/1.1 200 OK\n\nthe-credential",
       }) {
    const auto parsed = parse_answer_head(crlf(head));
    ASSERT_FALSE(parsed) << head;
    EXPECT_EQ(parsed.error().reason, Reason::UpstreamMalformed) << head;
    EXPECT_EQ(parsed.error().detail.find("credential"), std::string::npos) << parsed.error().detail;
  }
}

}  // namespace
}  // namespace sallyport::upstream
