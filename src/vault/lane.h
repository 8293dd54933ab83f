// The lane protocol: what gate and vault say about one request at a time on a Unix stream socket, as bytes
// and as rules, without I/O. docs/lane-protocol.md is the same in words. The vault takes the gate for hostile
// here: every length has a limit, every byte a place where it may stand. Reason VaultRefused throughout, for
// what a gate sent; VaultUnavailable for what a vault sent.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "policy/grant.h"
#include "upstream/exchange.h"

namespace sallyport::vault {

// The packet that hands a lane over: this text, and one descriptor. The number is the protocol's version.
inline constexpr std::string_view kLaneHello = "sallyport lane 1";

// How long a lane may be silent, in either direction, within a request. The upstream is silent that long at
// the most: it is resolved, reached, and answers; the rest is slack.
std::chrono::milliseconds lane_silence(const policy::Timeouts& timeouts);

inline constexpr std::size_t kFrameHeaderBytes = 5;  // u32 length of the payload, u8 type
inline constexpr std::size_t kMaxPayloadBytes = 64 * 1024;

enum class FrameType : std::uint8_t {
  RequestHead = 1,  // gate to vault
  Body = 2,
  BodyEnd = 3,
  AnswerHead = 4,  // vault to gate
  AnswerBody = 5,
  AnswerEnd = 6,
  Error = 7,
};

struct FrameHeader {
  FrameType type;
  std::uint32_t bytes;  // of the payload
};

std::array<char, kFrameHeaderBytes> encode_frame_header(FrameHeader header);
// Refuses an unknown type, a payload over the type's limit, an end with a payload, and any other frame
// without.
std::optional<FrameHeader> decode_frame_header(std::string_view bytes);

// ---- payloads ----

struct RequestHead {
  std::string session;
  std::string request_id;
  std::uint32_t rule = 0;
  std::string method;
  std::string host;
  std::uint16_t port = 0;
  std::string target;
  std::vector<upstream::Header> headers;
  upstream::BodyKind body = upstream::BodyKind::None;
  std::uint64_t body_bytes = 0;  // Declared only
};

RequestHead make_request_head(const upstream::Request& request, std::string session);
// Refuses what decode_request_head() would.
Result<std::string> encode(const RequestHead& head);
// Each byte is checked: header names are from kForwardedHeaders, each at most once; values are printable
// ASCII, 0x80-0xff, and spaces or tabs between them, so no CR, LF or NUL anywhere.
Result<RequestHead> decode_request_head(std::string_view payload);

// The answer's fields that leave the vault. What is missing here on purpose: Set-Cookie, WWW-Authenticate and
// Location (a client would follow them, or keep them), and everything that tells about the credential
// (X-OAuth-Scopes and its kind).
inline constexpr std::string_view kForwardedAnswerHeaders[] = {
    "cache-control", "content-encoding", "content-type", "date", "expires", "pragma", "retry-after", "vary",
};

// Keeps only kForwardedAnswerHeaders, in their order. UpstreamMalformed when what is left does not fit a
// frame, or is nothing that an answer may have.
Result<std::string> encode(const upstream::AnswerHead& head);
Result<upstream::AnswerHead> decode_answer_head(std::string_view payload);

// The detail is cut to its limit.
std::string encode(const Error& error);
Result<Error> decode_error(std::string_view payload);

// ---- order ----

// What a gate may send next. A request after another waits for the first one's answer to end.
class RequestOrder {
 public:
  Status accept(FrameHeader header);
  // After RequestHead was accepted and decoded.
  void begin(upstream::BodyKind body, std::uint64_t body_bytes);
  void answer_ended();

  // Between two requests.
  bool idle() const { return state_ == State::Idle; }

 private:
  enum class State : std::uint8_t { Idle, Body, AwaitingAnswer };

  State state_ = State::Idle;
  bool answer_ended_ = false;
  upstream::BodyKind body_ = upstream::BodyKind::None;
  std::uint64_t remaining_ = 0;  // of a Declared body
};

// What a vault may send next, to one request.
class AnswerOrder {
 public:
  Status accept(FrameHeader header);
  // After AnswerHead was accepted and decoded.
  void begin(std::optional<std::uint64_t> body_bytes) { remaining_ = body_bytes; }

  bool ended() const { return state_ == State::Ended; }

 private:
  enum class State : std::uint8_t { Head, Body, Ended, Failed };

  State state_ = State::Head;
  std::optional<std::uint64_t> remaining_;
};

}  // namespace sallyport::vault
