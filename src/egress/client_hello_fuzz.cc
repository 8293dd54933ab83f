// Any bytes as the server_name extension. What is accepted must be exactly the bytes, but for case and one
// trailing dot.

#include <cstdint>
#include <cstdlib>

#include "base/text.h"
#include "egress/client_hello.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sallyport;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto host = egress::parse_server_name(bytes);
  if (!host) return 0;
  constexpr std::size_t kHeads = 5;
  std::string name = lowered(bytes.substr(kHeads));
  if (name.ends_with('.')) name.pop_back();
  if (name != host->str()) std::abort();
  return 0;
}
