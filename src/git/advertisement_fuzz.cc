// Any bytes as an upstream's advertisement; the first one chooses the service. The outcome does not depend on
// how they are cut, and filtering twice changes nothing more.

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>

#include "git/advertisement.h"

using namespace sallyport;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

std::optional<std::string> filter(policy::GitService service, std::string_view bytes, std::size_t piece) {
  git::AdvertisementFilter filter(service);
  std::string out;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
    auto passed = filter.feed(bytes.substr(0, piece));
    if (!passed) return std::nullopt;
    out += *passed;
  }
  if (!filter.finish()) return std::nullopt;
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto service = data[0] == 'p' ? policy::GitService::ReceivePack : policy::GitService::UploadPack;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto whole = filter(service, bytes, size);
  require(whole == filter(service, bytes, 3));
  if (!whole) return 0;
  require(whole->size() <= bytes.size());
  require(filter(service, *whole, size) == whole);
  return 0;
}
