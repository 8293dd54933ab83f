// A host name or authority as a client writes it. What was accepted must be in normal form, and stay what it
// is when it is read again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/text.h"
#include "policy/address.h"
#include "policy/host.h"

using sallyport::policy::HostName;

namespace {

void check(const HostName& host) {
  const auto again = HostName::parse(host.str());
  if (!again || *again != host) std::abort();
  if (host.str() != sallyport::lowered(host.str()) || host.str().ends_with('.')) std::abort();
  if (sallyport::policy::IpAddress::parse(host.str())) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto host = HostName::parse(text)) check(*host);
  if (const auto authority = sallyport::policy::parse_authority(text, 443)) {
    check(authority->host);
    if (authority->port == 0) std::abort();
  }
  if (const auto address = sallyport::policy::IpAddress::parse(text)) {
    if (HostName::parse(text)) std::abort();
    if (sallyport::policy::IpAddress::parse(address->str()) != address) std::abort();
  }
  return 0;
}
