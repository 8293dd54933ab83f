// Any bytes: refused, or exactly what encode_grant() writes for the grant that was read.

#include <cstdint>
#include <cstdlib>

#include "wire/grant_codec.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto grant = sallyport::wire::decode_grant(bytes);
  if (grant && sallyport::wire::encode_grant(*grant) != bytes) std::abort();
  return 0;
}
