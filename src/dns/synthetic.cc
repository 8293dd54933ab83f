#include "dns/synthetic.h"

#include <stdexcept>

namespace sallyport::dns {
namespace {

constexpr std::uint8_t kRange[2] = {198, 18};
// 198.18.0.0 is the range itself and 198.18.0.1 the sandbox's own address and name server.
constexpr std::uint32_t kFirstOffset = 2;

std::uint32_t offset_in_range(const policy::IpAddress& address) {
  return (static_cast<std::uint32_t>(address.bytes[1]) - kRange[1]) << 16U |
         static_cast<std::uint32_t>(address.bytes[2]) << 8U | address.bytes[3];
}

}  // namespace

SyntheticAddresses::SyntheticAddresses(const policy::Grant& grant) {
  if (grant.hosts.size() > kMaxSyntheticAddresses) throw std::length_error("a grant names too many hosts");
  hosts_.reserve(grant.hosts.size());
  for (const auto& [host, upstream] : grant.hosts) {
    offset_of_.emplace(host, static_cast<std::uint32_t>(hosts_.size()));
    hosts_.push_back(host);
  }
}

bool SyntheticAddresses::in_range(const policy::IpAddress& address) {
  return address.family == policy::Family::V4 && address.bytes[0] == kRange[0] &&
         (address.bytes[1] & 0xFEU) == kRange[1];
}

std::optional<policy::IpAddress> SyntheticAddresses::address_of(const policy::HostName& host) const {
  const auto found = offset_of_.find(host);
  if (found == offset_of_.end()) return std::nullopt;
  const std::uint32_t offset = found->second + kFirstOffset;
  policy::IpAddress address;
  address.bytes[0] = kRange[0];
  address.bytes[1] = static_cast<std::uint8_t>(kRange[1] + (offset >> 16U));
  address.bytes[2] = static_cast<std::uint8_t>(offset >> 8U & 0xFFU);
  address.bytes[3] = static_cast<std::uint8_t>(offset & 0xFFU);
  return address;
}

const policy::HostName* SyntheticAddresses::host_at(const policy::IpAddress& address) const {
  if (!in_range(address)) return nullptr;
  const std::uint32_t offset = offset_in_range(address);
  if (offset < kFirstOffset || offset - kFirstOffset >= hosts_.size()) return nullptr;
  return &hosts_[offset - kFirstOffset];
}

}  // namespace sallyport::dns
