// Any bytes: each of the five decoders refuses them, or gives a message that encodes to something it reads
// again.

#include <cstdint>
#include <cstdlib>

#include "wire/messages.h"

namespace sallyport::wire {
namespace {

template <class Variant>
void check(std::string_view bytes, Result<Variant> (*decode)(std::string_view)) {
  const auto message = decode(bytes);
  if (!message) return;
  const std::string again = encode(*message);
  const auto second = decode(again);
  if (!second || encode(*second) != again) std::abort();
}

}  // namespace
}  // namespace sallyport::wire

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sallyport::wire;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check(bytes, decode_to_service);
  check(bytes, decode_to_gate);
  check(bytes, decode_from_gate);
  check(bytes, decode_to_vault);
  check(bytes, decode_from_vault);
  return 0;
}
