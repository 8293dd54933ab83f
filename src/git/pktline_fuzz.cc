// Any bytes as pkt-lines: what is read stays inside them, and written again it is read the same.

#include <cstdint>
#include <cstdlib>
#include <string>

#include "git/pktline.h"

using namespace sallyport;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  while (true) {
    const auto pkt = git::next_pkt(rest, Reason::BadPush);
    if (!pkt || !*pkt) return 0;
    require((*pkt)->bytes >= git::kPktHeadBytes && (*pkt)->bytes <= rest.size());
    if ((*pkt)->kind == git::PktKind::Data) {
      std::string again;
      git::append_pkt(again, (*pkt)->data);
      const auto second = git::next_pkt(again, Reason::BadPush);
      require(second && *second && (*second)->data == (*pkt)->data && (*second)->bytes == again.size());
    }
    rest.remove_prefix((*pkt)->bytes);
  }
}
