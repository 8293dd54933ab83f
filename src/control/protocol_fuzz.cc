#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "control/protocol.h"

// What is read must come back as the same bytes, so that no message can be spelled in two ways.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sallyport::control;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto message = decode_to_warden(bytes); message && encode(*message) != bytes) std::abort();
  if (const auto message = decode_from_warden(bytes); message && encode(*message) != bytes) std::abort();
  if (const auto request = decode_request(bytes); request && encode_request(*request) != bytes) std::abort();
  return 0;
}
