// For tests: what a gate that is no longer ours may send on a lane. Each case ends in an error frame and a
// closed lane; few get so far that the upstream sees the head of a request, which then is a permitted one.
#pragma once

#include <string>
#include <string_view>

#include "vault/lane.h"
#include "wire/codec.h"

namespace sallyport::vault {

using upstream::BodyKind;

inline std::string frame(FrameType type, std::string_view payload) {
  const auto header = encode_frame_header({type, static_cast<std::uint32_t>(payload.size())});
  return std::string(header.data(), header.size()).append(payload);
}

inline RequestHead head(BodyKind body, std::uint64_t body_bytes = 0) {
  return {.session = "s1",
          .request_id = "r1",
          .rule = 0,
          .method = "POST",
          .host = "forge.test",
          .port = 443,
          .target = "/acme/widget/git-receive-pack",
          .headers = {},
          .body = body,
          .body_bytes = body_bytes};
}

inline std::string head_frame(const RequestHead& head) {
  wire::Writer out;  // encode() would refuse what these tests send
  out.string(head.session).string(head.request_id).u32(head.rule);
  out.string(head.method).string(head.host).u16(head.port).string(head.target);
  out.u32(static_cast<std::uint32_t>(head.headers.size()));
  for (const auto& header : head.headers) out.string(header.name).string(header.value);
  return frame(FrameType::RequestHead, out.enumerator(head.body).u64(head.body_bytes).take());
}

inline std::string changed(void (*change)(RequestHead&)) {
  RequestHead made = head(BodyKind::None);
  change(made);
  return head_frame(made) + frame(FrameType::BodyEnd, "");
}

struct HostileCase {
  const char* sentence;
  std::string bytes;
  std::size_t requests = 0;  // that the upstream may have seen
};

inline const HostileCase kHostileCases[] = {
    {"AnotherSession", changed([](RequestHead& h) { h.session = "s2"; })},
    {"AnotherHost", changed([](RequestHead& h) { h.host = "evil.test"; })},
    {"AnotherPort", changed([](RequestHead& h) { h.port = 8443; })},
    {"AnotherRepository", changed([](RequestHead& h) { h.target = "/acme/other/git-receive-pack"; })},
    {"APushOnAFetchRule", changed([](RequestHead& h) {
       h.rule = 1;
       h.target = "/acme/locked/git-receive-pack";
     })},
    {"AnotherRule", changed([](RequestHead& h) { h.rule = 1; })},
    {"AnApi", changed([](RequestHead& h) { h.target = "/user"; })},
    {"AnAuthorizationHeader", changed([](RequestHead& h) { h.headers = {{"authorization", "x"}}; })},
    {"AContentLengthHeader", changed([](RequestHead& h) { h.headers = {{"content-length", "0"}}; })},
    {"CrLfInAHeader", changed([](RequestHead& h) { h.headers = {{"accept", "a\r\nHost: x"}}; })},
    {"NulInAHeader", changed([](RequestHead& h) { h.headers = {{"accept", std::string("a\0", 2)}}; })},
    {"CrLfInTheTarget", changed([](RequestHead& h) { h.target = "/a\r\nX: y"; })},
    {"NoSession", changed([](RequestHead& h) { h.session.clear(); })},
    {"ASessionWithANul", changed([](RequestHead& h) { h.session = std::string("s1\0", 3); })},
    {"CrLfInTheRequestId", changed([](RequestHead& h) { h.request_id = "r1\r\nX: y"; })},
    {"ARuleThatIsNone", changed([](RequestHead& h) { h.rule = 0xffffffff; })},
    {"ALowerCaseMethod", changed([](RequestHead& h) { h.method = "post"; })},
    {"AnotherMethod", changed([](RequestHead& h) { h.method = "DELETE"; })},
    {"AHeadRequest", changed([](RequestHead& h) { h.method = "HEAD"; })},
    {"AConnect", changed([](RequestHead& h) {
       h.method = "CONNECT";
       h.target = "evil.test:443";
     })},
    {"AGetOfAnRpc", changed([](RequestHead& h) { h.method = "GET"; })},
    {"CrLfInTheMethod", changed([](RequestHead& h) { h.method = "POST /x\r\n"; })},
    {"NulInTheMethod", changed([](RequestHead& h) { h.method = std::string("POST\0", 5); })},
    {"AHostInUpperCase", changed([](RequestHead& h) { h.host = "FORGE.test"; })},
    {"AHostWithADot", changed([](RequestHead& h) { h.host = "forge.test."; })},
    {"AHostWithAPort", changed([](RequestHead& h) { h.host = "forge.test:443"; })},
    {"AHostWithAUser", changed([](RequestHead& h) { h.host = "forge.test@evil.test"; })},
    {"AnAddressAsHost", changed([](RequestHead& h) { h.host = "127.0.0.1"; })},
    {"NulInTheHost", changed([](RequestHead& h) { h.host = std::string("forge.test\0.evil", 16); })},
    {"LfInTheHost", changed([](RequestHead& h) { h.host = "forge.test\nX: y"; })},
    {"PortZero", changed([](RequestHead& h) { h.port = 0; })},
    {"DotsInTheTarget", changed([](RequestHead& h) { h.target = "/acme/other/../widget/git-receive-pack"; })},
    {"APercentInTheTarget", changed([](RequestHead& h) { h.target = "/acme/%77idget/git-receive-pack"; })},
    {"ASlashTwice", changed([](RequestHead& h) { h.target = "//acme/widget/git-receive-pack"; })},
    {"AQueryBehindAnRpc", changed([](RequestHead& h) { h.target = "/acme/widget/git-receive-pack?x=y"; })},
    {"AnAbsoluteTarget",
     changed([](RequestHead& h) { h.target = "https://evil.test/acme/widget/git-receive-pack"; })},
    {"AnotherService", changed([](RequestHead& h) { h.target = "/acme/widget/git-upload-archive"; })},
    {"LfsOfTheRepository", changed([](RequestHead& h) { h.target = "/acme/widget/info/lfs/objects/batch"; })},
    {"ATokenEndpoint", changed([](RequestHead& h) { h.target = "/login/oauth/access_token"; })},
    {"NulInTheTarget",
     changed([](RequestHead& h) { h.target = std::string("/acme/widget/git-receive-pack\0", 30); })},
    {"ASpaceInTheTarget", changed([](RequestHead& h) { h.target += " HTTP/1.1"; })},
    {"AHostHeader", changed([](RequestHead& h) { h.headers = {{"host", "evil.test"}}; })},
    {"ATransferEncodingHeader",
     changed([](RequestHead& h) { h.headers = {{"transfer-encoding", "chunked"}}; })},
    {"AConnectionHeader", changed([](RequestHead& h) { h.headers = {{"connection", "authorization"}}; })},
    {"AnUpgradeHeader", changed([](RequestHead& h) { h.headers = {{"upgrade", "h2c"}}; })},
    {"AnExpectHeader", changed([](RequestHead& h) { h.headers = {{"expect", "100-continue"}}; })},
    {"ARangeHeader", changed([](RequestHead& h) { h.headers = {{"range", "bytes=0-"}}; })},
    {"ACookieHeader", changed([](RequestHead& h) { h.headers = {{"cookie", "a=b"}}; })},
    {"AProxyAuthorizationHeader",
     changed([](RequestHead& h) { h.headers = {{"proxy-authorization", "x"}}; })},
    {"AForwardedHeader", changed([](RequestHead& h) { h.headers = {{"x-forwarded-host", "evil.test"}}; })},
    {"AHeaderInUpperCase", changed([](RequestHead& h) { h.headers = {{"Accept", "x"}}; })},
    {"AHeaderNameWithAColon", changed([](RequestHead& h) { h.headers = {{"accept: x\r\nhost", "x"}}; })},
    {"AHeaderTwice", changed([](RequestHead& h) { h.headers = {{"accept", "x"}, {"accept", "y"}}; })},
    {"LfInAHeader", changed([](RequestHead& h) { h.headers = {{"accept", "a\nHost: x"}}; })},
    {"CrInAHeader", changed([](RequestHead& h) { h.headers = {{"accept", "a\rHost: x"}}; })},
    {"AHeaderThatBeginsWithASpace", changed([](RequestHead& h) { h.headers = {{"accept", " a"}}; })},
    {"AHeaderThatIsHuge",
     changed([](RequestHead& h) { h.headers = {{"accept", std::string(60'000, 'a')}}; })},
    {"ABodyOfNoKind", changed([](RequestHead& h) { h.body = static_cast<BodyKind>(3); })},
    {"ALengthForNoBody", changed([](RequestHead& h) { h.body_bytes = 4; })},
    {"AnAdvertisementWithABody", changed([](RequestHead& h) {
       h.method = "GET";
       h.target = "/acme/widget/info/refs?service=git-receive-pack";
       h.body = BodyKind::Declared;
       h.body_bytes = 4;
     })},
    {"AFrameOfNoType", frame(static_cast<FrameType>(0), "x")},
    {"AnEndWithAPayload", frame(FrameType::BodyEnd, "x")},
    {"AVaultsError", frame(FrameType::Error, std::string(6, '\x01'))},
    {"AnEmptyHead", std::string(kFrameHeaderBytes - 1, '\0') + "\x01"},
    {"AnUnknownFrame", frame(static_cast<FrameType>(99), "x")},
    {"AHugeLength", std::string("\xff\xff\xff\xff\x01", 5)},
    {"AVaultsFrame", frame(FrameType::AnswerEnd, "")},
    {"BodyBeforeAHead", frame(FrameType::Body, "x")},
    {"AnEndBeforeAHead", frame(FrameType::BodyEnd, "")},
    {"GarbageAsAHead", frame(FrameType::RequestHead, "GET / HTTP/1.1\r\n\r\n")},
    {"ABodyThatIsTooLong", head_frame(head(BodyKind::Declared, 3)) + frame(FrameType::Body, "four"), 1},
    {"ABodyThatIsTooShort",
     head_frame(head(BodyKind::Declared, 5)) + frame(FrameType::Body, "four") + frame(FrameType::BodyEnd, ""),
     1},
    {"ABodyWhereThereIsNone", head_frame(head(BodyKind::None)) + frame(FrameType::Body, "x"), 1},
    {"ARequestInsideABody",
     head_frame(head(BodyKind::Open)) + frame(FrameType::Body, "x") + head_frame(head(BodyKind::Open)), 1},
    {"AnUnknownFrameInsideABody", head_frame(head(BodyKind::Open)) + frame(static_cast<FrameType>(99), "x"),
     1},
};

}  // namespace sallyport::vault
