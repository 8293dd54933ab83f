#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "engine/answer_reader.h"

namespace {

using namespace sallyport::engine;

struct Reading {
  bool fine = false;
  bool done = false;
  std::string body;

  bool operator==(const Reading&) const = default;
};

Reading read(BodyKind kind, std::string_view bytes, std::size_t piece) {
  AnswerReader reader(kind);
  Reading reading;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    if (!reader.feed(bytes.substr(at, piece))) return reading;
    if (reader.head_done()) reading.body += reader.take_body();
  }
  reading.done = reader.done();
  reading.fine = reader.end().has_value();
  if (reader.head_done()) reading.body += reader.take_body();
  return reading;
}

}  // namespace

// However the bytes come, they say the same.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const BodyKind kind : {BodyKind::Whole, BodyKind::Stream, BodyKind::Raw}) {
    const Reading whole = read(kind, bytes, size + 1);
    const Reading pieces = read(kind, bytes, 1);
    if (whole.fine && pieces.fine && whole != pieces) std::abort();
  }
  return 0;
}
