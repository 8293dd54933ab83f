// For tests: what holds of every connection, whatever its bytes.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "gate/fake_front.h"
#include "http/request_head.h"
#include "wire/chunked.h"

namespace sallyport::gate::testing {

// Speaks for us, or for one hop: never an upstream's to see. (Connection and Upgrade: only a WebSocket's.)
inline bool may_reach_an_upstream(const http::RequestHead& head, const http::Field& field) {
  std::string name = lowered(field.name);
  std::ranges::replace(name, '_', '-');
  for (const std::string_view prefix : {"proxy-", "x-forwarded-"}) {
    if (name.starts_with(prefix)) return false;
  }
  for (const std::string_view never : {"te", "trailer", "keep-alive", "http2-settings", "expect", "forwarded",
                                       "via", "x-real-ip", "x-http-method-override", "x-original-url"}) {
    if (name == never) return false;
  }
  if (name == "connection") return field.value == "Upgrade" && head.single("upgrade") == "websocket";
  return true;
}

// With its last byte, and not before. What ends like a body may be the middle of a chunk.
inline bool ends_its_chunks(std::string_view body) {
  wire::ChunkedDecoder decoder(wire::ChunkedDecoder::Message::Request);
  while (!body.empty()) {
    const auto step = decoder.decode(body);
    if (!step) return false;
    body.remove_prefix(step->consumed);
    if (step->finished) return body.empty();
  }
  return false;
}

// One request of ours is whole and reads as one, to the host that it was judged for.
inline std::string fault_of_sent(const WireOpener::Sent& sent, const http::RequestHead& head,
                                 std::size_t head_bytes) {
  const std::string_view scheme = std::string_view(sent.origin).substr(0, sent.origin.find(':'));
  if (origin_of(scheme, head.host.host.str(), head.host.port) != sent.origin) return "Host is not its origin";
  for (const http::Field& field : head.fields) {
    if (!may_reach_an_upstream(head, field)) return "the field " + field.name;
  }
  const std::size_t body_bytes = sent.bytes.size() - head_bytes;
  if (head.body == http::BodyKind::None && body_bytes > 0) return "a body that nothing announces";
  if (head.body == http::BodyKind::Declared &&
      (body_bytes > head.body_bytes || sent.complete != (body_bytes == head.body_bytes))) {
    return "the body's length";
  }
  if (head.body == http::BodyKind::Chunked &&
      sent.complete != ends_its_chunks(std::string_view(sent.bytes).substr(head_bytes))) {
    return "the body's end";
  }
  return "";
}

// What is forwarded is what was judged and recorded: each whole request of ours reads as exactly one, with
// the method, the target and the host of its audit line; and there is none without a line. "" when it is so.
inline std::string broken_invariant(const Verdict& verdict) {
  auto judged = verdict.judged.begin();
  for (const WireOpener::Sent& sent : verdict.sent) {
    const std::uint16_t port = sent.origin.starts_with("https:") ? policy::kHttpsPort : policy::kHttpPort;
    const auto bytes = http::HeadScanner().scan(sent.bytes);
    if (!bytes || !*bytes) return "no whole head: " + sent.bytes;
    const auto head = http::parse_request_head(std::string_view(sent.bytes).substr(0, **bytes), port);
    if (!head) return "no head that can be read: " + sent.bytes;
    // git's probe of four bytes is allowed, and answered without the upstream.
    judged = std::find_if(judged, verdict.judged.end(), [&](const auto& candidate) {
      return candidate.method == head->method && candidate.target == head->target &&
             candidate.origin == sent.origin;
    });
    if (judged == verdict.judged.end()) return "was not judged: " + sent.bytes;
    ++judged;
    if (std::string fault = fault_of_sent(sent, *head, **bytes); !fault.empty()) {
      return std::move(fault) + " of: " + sent.bytes;
    }
  }
  const auto begun = std::ranges::count(verdict.lines, "begin");
  const auto ended =
      std::ranges::count_if(verdict.lines, [](const std::string& line) { return line.starts_with("end "); });
  return begun == ended ? "" : "a begin without its end";
}

// Chunks are written as they come, so only a head is the same however the client's bytes were cut.
inline std::string_view head_of(std::string_view bytes) {
  return bytes.substr(0, bytes.find("\r\n\r\n"));
}

}  // namespace sallyport::gate::testing
