// Any bytes as one connection, from the client to the bytes for the upstream. What is forwarded is what was
// judged: each whole request of ours reads as exactly one, with the method and target of its audit line, and
// where the bytes were cut changes no request that is forwarded. (It may change which of two reasons refuses
// one and, since a refusal does not wait for a body that is still to come, whether the connection goes on.)
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "gate/fake_front.h"
#include "http/request_head.h"

using namespace sallyport;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

// Chunks are written as they come.
std::string_view head_of(std::string_view bytes) {
  return bytes.substr(0, bytes.find("\r\n\r\n"));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const policy::Grant kGrant = gate::testing::forge_grant();
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const gate::testing::Verdict whole = gate::testing::serve_bytes({bytes}, kGrant);
  auto judged = whole.judged.begin();
  for (const auto& [sent, complete] : whole.sent) {
    const auto head_bytes = http::HeadScanner().scan(sent);
    require(head_bytes && *head_bytes);
    const auto head = http::parse_request_head(std::string_view(sent).substr(0, **head_bytes), 443);
    require(head.has_value());
    // git's probe of four bytes is allowed, and answered without the upstream.
    judged = std::find_if(judged, whole.judged.end(), [&head](const auto& candidate) {
      return candidate.method == head->method && candidate.target == head->target;
    });
    require(judged != whole.judged.end());
    ++judged;
    require(head->host.host.str() == "forge.test" && head->host.port == 443);
    const std::size_t body_bytes = sent.size() - **head_bytes;
    if (head->body != http::BodyKind::Chunked) require(body_bytes <= head->body_bytes);
    if (head->body == http::BodyKind::Declared) {
      require(complete == (body_bytes == head->body_bytes));
    }
  }
  if (size < 2) return 0;
  const auto cut = gate::testing::serve_bytes({bytes.substr(0, size / 2), bytes.substr(size / 2)}, kGrant);
  for (std::size_t i = 0; i < std::min(cut.sent.size(), whole.sent.size()); ++i) {
    require(head_of(cut.sent[i].bytes) == head_of(whole.sent[i].bytes));
  }
  return 0;
}
