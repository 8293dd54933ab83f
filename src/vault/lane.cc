#include "vault/lane.h"

#include <algorithm>

#include "base/text.h"
#include "wire/codec.h"

namespace sallyport::vault {
namespace {

// Limits of a request head's texts. They all fit one frame.
constexpr std::size_t kMaxSessionBytes = 64;
constexpr std::size_t kMaxRequestIdBytes = 64;
constexpr std::size_t kMaxMethodBytes = 16;
constexpr std::size_t kMaxHostBytes = policy::HostName::kMaxBytes;
constexpr std::size_t kMaxTargetBytes = 8192;
constexpr std::size_t kMaxHeaderNameBytes = 64;
constexpr std::size_t kMaxHeaderValueBytes = 4096;
// Of an answer head: a field may come several times.
constexpr std::size_t kMaxAnswerHeaders = 32;
constexpr std::size_t kMaxErrorDetailBytes = 1024;
constexpr std::size_t kMaxErrorPayloadBytes = 1 + 4 + kMaxErrorDetailBytes;

std::unexpected<Error> refused(std::string detail) {
  return fail(Reason::VaultRefused, "lane: " + std::move(detail));
}
std::unexpected<Error> bad_vault(std::string detail) {
  return fail(Reason::VaultUnavailable, "lane: " + std::move(detail));
}

// How large a type's payload may be, and whether it must have one.
bool is_payload_size(FrameType type, std::uint32_t bytes) {
  switch (type) {
    case FrameType::RequestHead:
    case FrameType::Body:
    case FrameType::AnswerHead:
    case FrameType::AnswerBody:
      return bytes > 0 && bytes <= kMaxPayloadBytes;
    case FrameType::BodyEnd:
    case FrameType::AnswerEnd:
      return bytes == 0;
    case FrameType::Error:
      return bytes > 0 && bytes <= kMaxErrorPayloadBytes;
  }
  return false;  // a number that is no type
}

// RFC 9110, 5.5: field-content, without the white space around it that a parser would have to drop.
bool is_field_value(std::string_view value) {
  if (trimmed(value).size() != value.size()) return false;
  return std::ranges::all_of(value, is_field_value_char);
}

bool is_visible_word(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, is_visible);
}

bool is_final_status(int status) {
  return status >= 200 && status <= 599;
}

bool contains(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

std::vector<upstream::Header> get_headers(wire::Reader& in, std::size_t max_headers) {
  std::vector<upstream::Header> headers;
  const std::uint32_t count = in.count(static_cast<std::uint32_t>(max_headers));
  for (std::uint32_t i = 0; i < count && in.ok(); ++i) {
    std::string name = in.string(kMaxHeaderNameBytes);
    std::string value = in.string(kMaxHeaderValueBytes);
    headers.push_back({std::move(name), std::move(value)});
  }
  return headers;
}

void put_headers(wire::Writer& out, std::span<const upstream::Header> headers) {
  out.u32(static_cast<std::uint32_t>(headers.size()));
  for (const upstream::Header& header : headers) out.string(header.name).string(header.value);
}

// The headers of a request: allowed names, each once, and values of allowed bytes.
Status check_request_headers(std::span<const upstream::Header> headers) {
  for (std::size_t i = 0; i < headers.size(); ++i) {
    const std::string& name = headers[i].name;
    if (!contains(upstream::kForwardedHeaders, name)) return refused("a header that is not forwarded");
    if (!is_field_value(headers[i].value)) return refused("a header value with a forbidden byte");
    for (std::size_t j = 0; j < i; ++j) {
      if (headers[j].name == name) return refused("a header twice");
    }
  }
  return {};
}

Status check_texts(const RequestHead& head) {
  if (!is_visible_word(head.session) || !is_visible_word(head.request_id))
    return refused("no session or request id");
  if (!is_token(head.method)) return refused("a method that is no token");
  if (!is_visible_word(head.host)) return refused("a host with a forbidden byte");
  if (!is_visible_word(head.target)) return refused("a target with a forbidden byte");
  if (head.body != upstream::BodyKind::Declared && head.body_bytes != 0) {
    return refused("a length for a body that declares none");
  }
  return check_request_headers(head.headers);
}

}  // namespace

std::chrono::milliseconds lane_silence(const policy::Timeouts& timeouts) {
  constexpr std::chrono::seconds kSlack{40};
  return timeouts.connect + timeouts.tls + std::max(timeouts.first_byte, timeouts.idle) + kSlack;
}

std::array<char, kFrameHeaderBytes> encode_frame_header(FrameHeader header) {
  const std::string bytes = wire::Writer().u32(header.bytes).enumerator(header.type).take();
  std::array<char, kFrameHeaderBytes> encoded{};
  std::ranges::copy(bytes, encoded.begin());
  return encoded;
}

std::optional<FrameHeader> decode_frame_header(std::string_view bytes) {
  wire::Reader in(bytes);
  const std::uint32_t size = in.u32();
  const auto type = static_cast<FrameType>(in.u8());
  if (!in.finished() || !is_payload_size(type, size)) return std::nullopt;
  return FrameHeader{type, size};
}

RequestHead make_request_head(const upstream::Request& request, std::string session) {
  return {.session = std::move(session),
          .request_id = request.request_id,
          .rule = static_cast<std::uint32_t>(request.rule),
          .method = request.method,
          .host = request.host.str(),
          .port = request.port,
          .target = request.target,
          .headers = request.headers,
          .body = request.body,
          .body_bytes = request.body == upstream::BodyKind::Declared ? request.body_bytes : 0};
}

Result<std::string> encode(const RequestHead& head) {
  wire::Writer out;
  out.string(head.session).string(head.request_id).u32(head.rule);
  out.string(head.method).string(head.host).u16(head.port).string(head.target);
  put_headers(out, head.headers);
  out.enumerator(head.body).u64(head.body_bytes);
  std::string payload = out.take();
  // The other side's rules, asked here: an honest gate need not send what will be refused.
  if (auto checked = decode_request_head(payload); !checked) return fail(std::move(checked));
  return payload;
}

Result<RequestHead> decode_request_head(std::string_view payload) {
  wire::Reader in(payload);
  RequestHead head;
  head.session = in.string(kMaxSessionBytes);
  head.request_id = in.string(kMaxRequestIdBytes);
  head.rule = in.u32();
  head.method = in.string(kMaxMethodBytes);
  head.host = in.string(kMaxHostBytes);
  head.port = in.u16();
  head.target = in.string(kMaxTargetBytes);
  head.headers = get_headers(in, std::size(upstream::kForwardedHeaders));
  head.body = in.enumerator(upstream::BodyKind::Open);
  head.body_bytes = in.u64();
  if (!in.finished()) return refused("a cut or malformed request head");
  if (auto checked = check_texts(head); !checked) return fail(std::move(checked));
  return head;
}

Result<std::string> encode(const upstream::AnswerHead& head) {
  if (!is_final_status(head.status)) return fail(Reason::UpstreamMalformed, "no final status");
  std::vector<upstream::Header> kept;
  for (const upstream::Header& header : head.headers) {
    if (!contains(kForwardedAnswerHeaders, header.name)) continue;
    if (header.value.size() > kMaxHeaderValueBytes || kept.size() == kMaxAnswerHeaders) {
      return fail(Reason::UpstreamMalformed, "the answer's head is too large");
    }
    if (!is_field_value(header.value)) {
      return fail(Reason::UpstreamMalformed, "an answer's header with a forbidden byte");
    }
    kept.push_back(header);
  }
  wire::Writer out;
  out.u16(static_cast<std::uint16_t>(head.status));
  put_headers(out, kept);
  out.u8(head.body_bytes ? 1 : 0).u64(head.body_bytes.value_or(0));
  std::string payload = out.take();
  if (payload.size() > kMaxPayloadBytes) {
    return fail(Reason::UpstreamMalformed, "the answer's head is too large");
  }
  return payload;
}

Result<upstream::AnswerHead> decode_answer_head(std::string_view payload) {
  wire::Reader in(payload);
  upstream::AnswerHead head;
  head.status = in.u16();
  head.headers = get_headers(in, kMaxAnswerHeaders);
  const bool declared = in.flag();
  const std::uint64_t body_bytes = in.u64();
  if (declared) head.body_bytes = body_bytes;
  if (!declared && body_bytes != 0) in.refuse();
  if (!in.finished() || !is_final_status(head.status)) return bad_vault("a malformed answer head");
  for (const upstream::Header& header : head.headers) {
    if (!contains(kForwardedAnswerHeaders, header.name) || !is_field_value(header.value)) {
      return bad_vault("a header that no vault sends");
    }
  }
  return head;
}

std::string encode(const Error& error) {
  return wire::Writer()
      .enumerator(error.reason)
      .string(std::string_view(error.detail).substr(0, kMaxErrorDetailBytes))
      .take();
}

Result<Error> decode_error(std::string_view payload) {
  wire::Reader in(payload);
  Error error;
  error.reason = in.enumerator(Reason::Internal);
  error.detail = in.string(kMaxErrorDetailBytes);
  if (!in.finished() || error.reason == Reason::None) return bad_vault("a malformed error");
  return error;
}

Status RequestOrder::accept(FrameHeader header) {
  switch (header.type) {
    case FrameType::RequestHead:
      if (state_ != State::Idle) return refused("a request inside another");
      return {};
    case FrameType::Body:
      if (state_ != State::Body) return refused("body bytes where there is no body");
      if (body_ == upstream::BodyKind::Open) return {};
      if (header.bytes > remaining_) return refused("more body bytes than were declared");
      remaining_ -= header.bytes;
      return {};
    case FrameType::BodyEnd:
      if (state_ != State::Body) return refused("an end where there is no body");
      if (remaining_ != 0) return refused("fewer body bytes than were declared");
      state_ = answer_ended_ ? State::Idle : State::AwaitingAnswer;
      return {};
    case FrameType::AnswerHead:
    case FrameType::AnswerBody:
    case FrameType::AnswerEnd:
    case FrameType::Error:
      return refused("a frame that only a vault sends");
  }
  return refused("an unknown frame");
}

void RequestOrder::begin(upstream::BodyKind body, std::uint64_t body_bytes) {
  state_ = State::Body;
  answer_ended_ = false;
  body_ = body;
  remaining_ = body == upstream::BodyKind::Declared ? body_bytes : 0;
}

void RequestOrder::answer_ended() {
  answer_ended_ = true;
  if (state_ == State::AwaitingAnswer) state_ = State::Idle;
}

Status AnswerOrder::accept(FrameHeader header) {
  switch (header.type) {
    case FrameType::AnswerHead:
      if (state_ != State::Head) return bad_vault("a second answer head");
      state_ = State::Body;
      return {};
    case FrameType::AnswerBody:
      if (state_ != State::Body) return bad_vault("answer bytes without a head");
      if (!remaining_) return {};
      if (header.bytes > *remaining_) return bad_vault("more answer bytes than were declared");
      *remaining_ -= header.bytes;
      return {};
    case FrameType::AnswerEnd:
      if (state_ != State::Body) return bad_vault("an answer's end without its head");
      if (remaining_.value_or(0) != 0) return bad_vault("fewer answer bytes than were declared");
      state_ = State::Ended;
      return {};
    case FrameType::Error:
      if (state_ == State::Ended || state_ == State::Failed) return bad_vault("an error after the end");
      state_ = State::Failed;
      return {};
    case FrameType::RequestHead:
    case FrameType::Body:
    case FrameType::BodyEnd:
      return bad_vault("a frame that only a gate sends");
  }
  return bad_vault("an unknown frame");
}

}  // namespace sallyport::vault
