// Frames as a hostile gate, or a broken vault, would send them. The first byte says who is speaking. Whatever
// is accepted must keep to the order's rules and encode to what was read.

#include <cstdint>
#include <cstdlib>

#include "vault/lane.h"

namespace sallyport::vault {
namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void check_request_head(std::string_view payload, RequestOrder& order) {
  const auto head = decode_request_head(payload);
  if (!head) return;
  const auto again = encode(*head);
  require(again && *again == payload);
  order.begin(head->body, head->body_bytes);
}

void check_answer(FrameType type, std::string_view payload, AnswerOrder& order) {
  if (type == FrameType::AnswerHead) {
    const auto head = decode_answer_head(payload);
    if (!head) return;
    const auto again = encode(*head);
    // The reader's limits are those of single fields, the writer's also those of the frame.
    require(again && *again == payload);
    order.begin(head->body_bytes);
  } else if (type == FrameType::Error) {
    const auto error = decode_error(payload);
    if (error) require(encode(*error) == payload);
  }
}

}  // namespace
}  // namespace sallyport::vault

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sallyport::vault;
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (bytes.empty()) return 0;
  const bool from_gate = bytes[0] % 2 == 0;
  bytes.remove_prefix(1);

  RequestOrder requests;
  AnswerOrder answer;
  while (bytes.size() >= kFrameHeaderBytes) {
    const auto header = decode_frame_header(bytes.substr(0, kFrameHeaderBytes));
    bytes.remove_prefix(kFrameHeaderBytes);
    if (!header || header->bytes > bytes.size()) return 0;
    require(header->bytes <= kMaxPayloadBytes);
    const std::string_view payload = bytes.substr(0, header->bytes);
    bytes.remove_prefix(header->bytes);
    if (from_gate) {
      if (!requests.accept(*header)) return 0;
      if (header->type == FrameType::RequestHead) check_request_head(payload, requests);
      if (header->type == FrameType::BodyEnd) requests.answer_ended();
    } else {
      if (!answer.accept(*header)) return 0;
      check_answer(header->type, payload, answer);
    }
  }
  return 0;
}
