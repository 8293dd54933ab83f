// The outcome may not depend on how the bytes are cut: whole and byte by byte give the same.

#include <cstdint>
#include <cstdlib>
#include <string>

#include "upstream/answer.h"

namespace {

using sallyport::upstream::AnswerFramer;
using sallyport::upstream::Asked;

struct Outcome {
  int status = 0;
  std::string body;
  std::size_t consumed = 0;
  bool failed = false;
  bool ended = false;
  bool reusable = false;
  bool operator==(const Outcome&) const = default;
};

Outcome run(std::string_view in, std::size_t piece, const Asked& asked) {
  AnswerFramer framer(asked);
  Outcome out;
  while (out.consumed < in.size() && !framer.ended()) {
    const auto step = framer.feed(in.substr(out.consumed, piece));
    if (!step) {
      out.failed = true;
      out.consumed = 0;  // how far the failing call came is nobody's business
      return out;
    }
    out.consumed += step->consumed;
    out.body += step->data;
    if (step->event == AnswerFramer::Event::Head) out.status = framer.take_head().status;
  }
  out.ended = framer.end_of_input().has_value();
  out.reusable = framer.reusable();
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view in(reinterpret_cast<const char*>(data), size);
  for (const Asked& asked : {Asked{}, Asked{.head = true}, Asked{.head = false, .upgrade = "websocket"}}) {
    if (run(in, in.size(), asked) != run(in, 1, asked)) std::abort();
  }
  return 0;
}
