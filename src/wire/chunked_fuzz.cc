// The outcome may not depend on how the bytes are cut: whole and byte by byte give the same.

#include <cstdint>
#include <cstdlib>
#include <string>

#include "wire/chunked.h"

namespace {

using sallyport::wire::ChunkedDecoder;

struct Outcome {
  std::string body;
  std::size_t consumed = 0;
  bool failed = false;
  bool finished = false;
  bool operator==(const Outcome&) const = default;
};

Outcome run(std::string_view in, std::size_t piece, ChunkedDecoder::Message message) {
  ChunkedDecoder decoder(message);
  Outcome out;
  while (out.consumed < in.size() && !out.finished) {
    const auto step = decoder.decode(in.substr(out.consumed, piece));
    if (!step) {
      out.failed = true;
      out.consumed = 0;  // how far the failing call came is nobody's business
      return out;
    }
    out.body += step->data;
    out.consumed += step->consumed;
    out.finished = step->finished;
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view in(reinterpret_cast<const char*>(data), size);
  for (const auto message : {ChunkedDecoder::Message::Request, ChunkedDecoder::Message::Answer}) {
    if (run(in, in.size(), message) != run(in, 1, message)) std::abort();
  }
  return 0;
}
