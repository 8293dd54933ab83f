#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/text.h"
#include "engine/events.h"

// Each line is an event, none that we know, or refused.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sallyport;
  for (const std::string_view line : split({reinterpret_cast<const char*>(data), size}, '\n')) {
    const auto event = engine::read_event(line);
    if (!event || !*event) continue;
    const auto kind = (*event)->kind;
    const bool of_network = kind == engine::EventKind::Connect || kind == engine::EventKind::Disconnect;
    if (!of_network && !(*event)->network_id.empty()) std::abort();
  }
  return 0;
}
