#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "sandbox/init_protocol.h"

// The bytes may come from a hostile program that has taken sallyport-init's socket over. What is read must
// come back as the same bytes.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sallyport::sandbox;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto message = decode_from_init(bytes); message && encode(*message) != bytes) std::abort();
  if (const auto message = decode_to_init(bytes); message && encode(*message) != bytes) std::abort();
  return 0;
}
