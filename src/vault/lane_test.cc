#include "vault/lane.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "wire/codec.h"

namespace sallyport::vault {
namespace {

using testing::HasSubstr;
using upstream::BodyKind;

std::string frame_header(std::uint32_t bytes, std::uint8_t type) {
  return wire::Writer().u32(bytes).u8(type).take();
}

RequestHead good_head() {
  return {.session = "s1",
          .request_id = "r1",
          .rule = 2,
          .method = "POST",
          .host = "github.com",
          .port = 443,
          .target = "/acme/widget/git-upload-pack",
          .headers = {{"content-type", "application/x-git-upload-pack-request"}, {"accept", "*/*"}},
          .body = BodyKind::Declared,
          .body_bytes = 1234};
}

// The bytes that encode() refuses to write.
std::string forged(const RequestHead& head) {
  wire::Writer out;
  out.string(head.session).string(head.request_id).u32(head.rule);
  out.string(head.method).string(head.host).u16(head.port).string(head.target);
  out.u32(static_cast<std::uint32_t>(head.headers.size()));
  for (const auto& header : head.headers) out.string(header.name).string(header.value);
  return out.enumerator(head.body).u64(head.body_bytes).take();
}

TEST(FrameHeader, IsReadBack) {
  const auto bytes = encode_frame_header({FrameType::Body, 65536});
  const auto header = decode_frame_header({bytes.data(), bytes.size()});
  ASSERT_TRUE(header);
  EXPECT_EQ(header->type, FrameType::Body);
  EXPECT_EQ(header->bytes, 65536U);
}

TEST(FrameHeader, RefusesWhatIsNoFrame) {
  const std::pair<const char*, std::string> cases[] = {
      {"type 0", frame_header(1, 0)},
      {"an unknown type", frame_header(1, 8)},
      {"a payload over 64 KiB", frame_header(65537, 2)},
      {"a huge length", frame_header(0xffffffff, 2)},
      {"an empty head", frame_header(0, 1)},
      {"an empty body frame", frame_header(0, 2)},
      {"an end with a payload", frame_header(1, 3)},
      {"an answer's end with a payload", frame_header(1, 6)},
      {"an error over its limit", frame_header(2048, 7)},
      {"four bytes", frame_header(1, 2).substr(0, 4)},
      {"six bytes", frame_header(1, 2) + "x"},
  };
  for (const auto& [sentence, bytes] : cases) EXPECT_FALSE(decode_frame_header(bytes)) << sentence;
}

TEST(RequestHeadPayload, IsReadBack) {
  const auto payload = encode(good_head());
  ASSERT_TRUE(payload) << payload.error().detail;
  const auto head = decode_request_head(*payload);
  ASSERT_TRUE(head) << head.error().detail;
  EXPECT_EQ(forged(*head), forged(good_head()));
}

TEST(RequestHeadPayload, RefusesEveryTruncationAndAnExtraByte) {
  const std::string payload = forged(good_head());
  for (std::size_t size = 0; size < payload.size(); ++size) {
    EXPECT_FALSE(decode_request_head(std::string_view(payload).substr(0, size))) << size;
  }
  EXPECT_FALSE(decode_request_head(payload + "x"));
}

TEST(RequestHeadPayload, RefusesEveryByteThatCouldChangeTheRequest) {
  using Change = std::function<void(RequestHead&)>;
  const std::pair<const char*, Change> cases[] = {
      {"CR LF in a value", [](RequestHead& h) { h.headers[0].value = "a\r\nAuthorization: x"; }},
      {"LF in a value", [](RequestHead& h) { h.headers[0].value = "a\nb"; }},
      {"NUL in a value", [](RequestHead& h) { h.headers[0].value = std::string("a\0b", 3); }},
      {"DEL in a value", [](RequestHead& h) { h.headers[0].value = "a\x7f"; }},
      {"a space before a value", [](RequestHead& h) { h.headers[0].value = " a"; }},
      {"a tab behind a value", [](RequestHead& h) { h.headers[0].value = "a\t"; }},
      {"CR LF in a name", [](RequestHead& h) { h.headers[0].name = "accept\r\nx"; }},
      {"authorization", [](RequestHead& h) { h.headers[0].name = "authorization"; }},
      {"cookie", [](RequestHead& h) { h.headers[0].name = "cookie"; }},
      {"content-length", [](RequestHead& h) { h.headers[0].name = "content-length"; }},
      {"transfer-encoding", [](RequestHead& h) { h.headers[0].name = "transfer-encoding"; }},
      {"connection", [](RequestHead& h) { h.headers[0].name = "connection"; }},
      {"upgrade", [](RequestHead& h) { h.headers[0].name = "upgrade"; }},
      {"expect", [](RequestHead& h) { h.headers[0].name = "expect"; }},
      {"range", [](RequestHead& h) { h.headers[0].name = "range"; }},
      {"host", [](RequestHead& h) { h.headers[0].name = "host"; }},
      {"an upper-case name", [](RequestHead& h) { h.headers[0].name = "Accept"; }},
      {"a name twice", [](RequestHead& h) { h.headers[0].name = h.headers[1].name; }},
      {"an empty name", [](RequestHead& h) { h.headers[0].name = ""; }},
      {"a value over its limit", [](RequestHead& h) { h.headers[0].value = std::string(4097, 'a'); }},
      {"more headers than there are names", [](RequestHead& h) { h.headers.resize(9, {"accept", ""}); }},
      {"CR LF in the target", [](RequestHead& h) { h.target = "/a HTTP/1.1\r\nX: y"; }},
      {"a space in the target", [](RequestHead& h) { h.target = "/a b"; }},
      {"no target", [](RequestHead& h) { h.target = ""; }},
      {"a target over its limit", [](RequestHead& h) { h.target = std::string(8193, 'a'); }},
      {"LF in the host", [](RequestHead& h) { h.host = "a\nb.com"; }},
      {"a host over its limit", [](RequestHead& h) { h.host = std::string(254, 'a'); }},
      {"a space in the method", [](RequestHead& h) { h.method = "GET /"; }},
      {"a method over its limit", [](RequestHead& h) { h.method = std::string(17, 'A'); }},
      {"LF in the request's id", [](RequestHead& h) { h.request_id = "a\nb"; }},
      {"no session", [](RequestHead& h) { h.session = ""; }},
      {"a length for an open body", [](RequestHead& h) { h.body = BodyKind::Open; }},
      {"a length for no body", [](RequestHead& h) { h.body = BodyKind::None; }},
      {"an unknown kind of body", [](RequestHead& h) { h.body = static_cast<BodyKind>(3); }},
  };
  ASSERT_TRUE(decode_request_head(forged(good_head())));
  for (const auto& [sentence, change] : cases) {
    RequestHead head = good_head();
    change(head);
    const auto decoded = decode_request_head(forged(head));
    ASSERT_FALSE(decoded) << sentence;
    EXPECT_EQ(decoded.error().reason, Reason::VaultRefused) << sentence;
    EXPECT_FALSE(encode(head)) << sentence;
  }
}

TEST(RequestHeadPayload, LetsEveryForwardedHeaderThrough) {
  RequestHead head = good_head();
  head.headers.clear();
  for (const std::string_view name : upstream::kForwardedHeaders) {
    head.headers.push_back({std::string(name), "v\xc3\xa4lue, with\ttab"});
  }
  EXPECT_TRUE(encode(head));
}

TEST(AnswerHeadPayload, KeepsTheForwardedFieldsInTheirOrder) {
  const upstream::AnswerHead head{.status = 200,
                                  .headers = {{"server", "x"},
                                              {"pragma", "no-cache"},
                                              {"set-cookie", "session=1"},
                                              {"content-type", "text/plain"},
                                              {"location", "https://elsewhere/"},
                                              {"www-authenticate", "Basic"},
                                              {"x-oauth-scopes", "repo"},
                                              {"cache-control", "no-store"}},
                                  .body_bytes = 7};
  const auto payload = encode(head);
  ASSERT_TRUE(payload);
  for (const char* hidden : {"cookie", "elsewhere", "authenticate", "oauth", "server"}) {
    EXPECT_EQ(payload->find(hidden), std::string::npos) << hidden;
  }
  const auto decoded = decode_answer_head(*payload);
  ASSERT_TRUE(decoded) << decoded.error().detail;
  EXPECT_EQ(decoded->status, 200);
  EXPECT_EQ(decoded->body_bytes, 7U);
  ASSERT_EQ(decoded->headers.size(), 3U);
  EXPECT_EQ(decoded->headers[0].name, "pragma");
  EXPECT_EQ(decoded->headers[1].name, "content-type");
  EXPECT_EQ(decoded->headers[2].value, "no-store");
}

TEST(AnswerHeadPayload, RefusesToSendWhatNoFrameHoldsOrNoAnswerHas) {
  upstream::AnswerHead head{.status = 200, .headers = {}, .body_bytes = {}};
  head.headers.push_back({"content-type", std::string(4097, 'x')});
  EXPECT_EQ(encode(head).error().reason, Reason::UpstreamMalformed);
  head.headers = std::vector<upstream::Header>(33, {"vary", "x"});
  EXPECT_EQ(encode(head).error().reason, Reason::UpstreamMalformed);
  head.headers = std::vector<upstream::Header>(32, {"vary", std::string(4096, 'x')});
  EXPECT_EQ(encode(head).error().reason, Reason::UpstreamMalformed);
  head.headers = {{"vary", "a\nb"}};
  EXPECT_EQ(encode(head).error().reason, Reason::UpstreamMalformed);
  head.headers.clear();
  head.status = 100;
  EXPECT_EQ(encode(head).error().reason, Reason::UpstreamMalformed);
}

TEST(AnswerHeadPayload, RefusesEveryTruncationAndWhatNoVaultSends) {
  const std::string payload = encode(upstream::AnswerHead{200, {{"vary", "x"}}, 5}).value();
  for (std::size_t size = 0; size < payload.size(); ++size) {
    EXPECT_FALSE(decode_answer_head(std::string_view(payload).substr(0, size))) << size;
  }
  const auto forged_answer = [](std::uint16_t status, std::string_view name, std::string_view value) {
    return wire::Writer().u16(status).u32(1).string(name).string(value).u8(0).u64(0).take();
  };
  EXPECT_TRUE(decode_answer_head(forged_answer(200, "vary", "x")));
  EXPECT_FALSE(decode_answer_head(forged_answer(199, "vary", "x")));
  EXPECT_FALSE(decode_answer_head(forged_answer(600, "vary", "x")));
  EXPECT_FALSE(decode_answer_head(forged_answer(200, "location", "x")));
  EXPECT_FALSE(decode_answer_head(forged_answer(200, "vary", "a\r\nb")));
}

TEST(ErrorPayload, IsReadBackAndCut) {
  const auto error = decode_error(encode(Error{Reason::UpstreamTls, std::string(5000, 'd')}));
  ASSERT_TRUE(error);
  EXPECT_EQ(error->reason, Reason::UpstreamTls);
  EXPECT_EQ(error->detail, std::string(1024, 'd'));
  EXPECT_FALSE(decode_error(encode(Error{Reason::None, ""})));
  EXPECT_FALSE(decode_error(std::string("\xff\0\0\0\0", 5)));
  EXPECT_FALSE(decode_error(""));
}

constexpr FrameHeader kHead{FrameType::RequestHead, 100};
constexpr FrameHeader kBodyEnd{FrameType::BodyEnd, 0};
FrameHeader body(std::uint32_t bytes) {
  return {FrameType::Body, bytes};
}

RequestOrder in_body(BodyKind kind, std::uint64_t bytes) {
  RequestOrder order;
  EXPECT_TRUE(order.accept(kHead));
  order.begin(kind, bytes);
  return order;
}

TEST(RequestOrder, TakesOneRequestAfterTheOtherOnlyWhenTheAnswerEnded) {
  RequestOrder order = in_body(BodyKind::None, 0);
  EXPECT_FALSE(order.idle());
  EXPECT_TRUE(order.accept(kBodyEnd));
  EXPECT_FALSE(order.idle());
  EXPECT_FALSE(order.accept(kHead));
  order.answer_ended();
  EXPECT_TRUE(order.idle());
  EXPECT_TRUE(order.accept(kHead));
}

TEST(RequestOrder, AnAnswerMayEndBeforeTheBody) {
  RequestOrder order = in_body(BodyKind::Open, 0);
  order.answer_ended();
  EXPECT_TRUE(order.accept(body(10)));
  EXPECT_FALSE(order.idle());
  EXPECT_TRUE(order.accept(kBodyEnd));
  EXPECT_TRUE(order.idle());
}

TEST(RequestOrder, CountsWhatWasDeclared) {
  RequestOrder exact = in_body(BodyKind::Declared, 10);
  EXPECT_TRUE(exact.accept(body(4)));
  EXPECT_TRUE(exact.accept(body(6)));
  EXPECT_FALSE(exact.accept(body(1)));

  RequestOrder shorter = in_body(BodyKind::Declared, 10);
  EXPECT_TRUE(shorter.accept(body(9)));
  const Status refused = shorter.accept(kBodyEnd);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().detail, HasSubstr("fewer"));

  RequestOrder longer = in_body(BodyKind::Declared, 10);
  EXPECT_FALSE(longer.accept(body(11)));
  EXPECT_FALSE(in_body(BodyKind::None, 0).accept(body(1)));
}

TEST(RequestOrder, RefusesFramesOutOfPlace) {
  EXPECT_FALSE(RequestOrder().accept(body(1)));
  EXPECT_FALSE(RequestOrder().accept(kBodyEnd));
  EXPECT_FALSE(in_body(BodyKind::Open, 0).accept(kHead));
  for (const FrameType type :
       {FrameType::AnswerHead, FrameType::AnswerBody, FrameType::AnswerEnd, FrameType::Error}) {
    EXPECT_FALSE(RequestOrder().accept({type, 0}));
  }
}

TEST(AnswerOrder, IsHeadThenBodyThenEnd) {
  AnswerOrder order;
  EXPECT_FALSE(AnswerOrder().accept({FrameType::AnswerBody, 1}));
  EXPECT_FALSE(AnswerOrder().accept({FrameType::AnswerEnd, 0}));
  EXPECT_TRUE(order.accept({FrameType::AnswerHead, 10}));
  order.begin(3);
  EXPECT_FALSE(AnswerOrder(order).accept({FrameType::AnswerHead, 10}));
  EXPECT_FALSE(AnswerOrder(order).accept({FrameType::AnswerEnd, 0}));
  EXPECT_FALSE(AnswerOrder(order).accept({FrameType::AnswerBody, 4}));
  EXPECT_TRUE(order.accept({FrameType::AnswerBody, 3}));
  EXPECT_TRUE(AnswerOrder(order).accept({FrameType::Error, 5}));
  EXPECT_TRUE(order.accept({FrameType::AnswerEnd, 0}));
  EXPECT_TRUE(order.ended());
  EXPECT_FALSE(order.accept({FrameType::Error, 5}));
  EXPECT_FALSE(AnswerOrder().accept(kHead));
}

TEST(LaneSilence, IsLongerThanTheSilenceOfAnyUpstream) {
  using std::chrono::seconds;
  EXPECT_EQ(lane_silence({}), seconds(660));  // docs/lane-protocol.md
  EXPECT_EQ(
      lane_silence({.connect = seconds(1), .tls = seconds(2), .first_byte = seconds(3), .idle = seconds(4)}),
      seconds(1 + 2 + 4 + 40));
  EXPECT_EQ(
      lane_silence({.connect = seconds(1), .tls = seconds(2), .first_byte = seconds(5), .idle = seconds(4)}),
      seconds(1 + 2 + 5 + 40));
}

}  // namespace
}  // namespace sallyport::vault
