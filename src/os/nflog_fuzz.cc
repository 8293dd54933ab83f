#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "os/nflog.h"

// A datagram of the kernel's, with packets in it whose bytes a sandbox chose; and such a packet alone.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sallyport::os;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  // A report is longer than its message's head, its family and its attribute's.
  constexpr std::size_t kShortestReport = 16 + 4 + 4 + 20;
  if (parse_nflog(bytes).size() > size / kShortestReport) std::abort();
  RefusedPacket report;
  if (parse_packet_head(bytes, report)) static_cast<void>(report.destination.text());
  return 0;
}
