// Any bytes as one connection, from the client to the bytes for the upstream. What is forwarded is what was
// judged: each whole request of ours reads as exactly one, with the method and target of its audit line, and
// where the bytes were cut changes nothing.
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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const policy::Grant kGrant = gate::testing::forge_grant();
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const gate::testing::Verdict whole = gate::testing::serve_bytes({bytes}, kGrant);
  require(whole.judged.size() == whole.sent.size());
  for (std::size_t i = 0; i < whole.sent.size(); ++i) {
    const std::string& sent = whole.sent[i].bytes;
    const auto head_bytes = http::HeadScanner().scan(sent);
    require(head_bytes && *head_bytes);
    const auto head = http::parse_request_head(std::string_view(sent).substr(0, **head_bytes), 443);
    require(head.has_value());
    require(head->method == whole.judged[i].method && head->target == whole.judged[i].target);
    require(head->host.host.str() == "forge.test" && head->host.port == 443);
    const std::size_t body_bytes = sent.size() - **head_bytes;
    if (head->body != http::BodyKind::Chunked) require(body_bytes <= head->body_bytes);
    if (head->body == http::BodyKind::Declared) {
      require(whole.sent[i].complete == (body_bytes == head->body_bytes));
    }
  }
  if (size < 2) return 0;
  const auto cut = gate::testing::serve_bytes({bytes.substr(0, size / 2), bytes.substr(size / 2)}, kGrant);
  require(cut.lines == whole.lines && cut.sent.size() == whole.sent.size());
  return 0;
}
