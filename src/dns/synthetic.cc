#include "dns/synthetic.h"

namespace sallyport::dns {
namespace {

constexpr std::uint8_t kRange[2] = {198, 18};
constexpr std::uint32_t kOwnOffset = 1;
// 198.18.0.0 is the range itself.
constexpr std::uint32_t kFirstListed = 2;
constexpr std::uint32_t kFirstLent = 0x1E000;  // 198.19.224.0
static_assert(kFirstListed + kMaxListedAddresses <= kFirstLent);
static_assert(kFirstLent + kMaxWildcardAddresses < 0x20000);  // the range's end

std::uint32_t offset_in_range(const policy::IpAddress& address) {
  return (static_cast<std::uint32_t>(address.bytes[1]) - kRange[1]) << 16U |
         static_cast<std::uint32_t>(address.bytes[2]) << 8U | address.bytes[3];
}

policy::IpAddress address_at(std::uint32_t offset) {
  policy::IpAddress address;
  address.bytes[0] = kRange[0];
  address.bytes[1] = static_cast<std::uint8_t>(kRange[1] + (offset >> 16U));
  address.bytes[2] = static_cast<std::uint8_t>(offset >> 8U & 0xFFU);
  address.bytes[3] = static_cast<std::uint8_t>(offset & 0xFFU);
  return address;
}

}  // namespace

SyntheticAddresses::SyntheticAddresses(const policy::Grant& grant) {
  add(grant);
}

void SyntheticAddresses::add(const policy::Grant& grant) {
  for (const policy::GitRule& rule : grant.git) list(rule.repo.host());
  for (const policy::TcpRule& rule : grant.tcp) list(rule.host);
  for (const policy::AllowRule& rule : grant.allow) {
    for (const policy::HostPattern& pattern : rule.hosts) {
      if (!pattern.is_wildcard()) list(pattern.base());
    }
  }
}

void SyntheticAddresses::list(const policy::HostName& host) {
  if (listed_.size() == kMaxListedAddresses) return;
  const auto offset = static_cast<std::uint32_t>(listed_.size()) + kFirstListed;
  if (listed_offset_.try_emplace(host, offset).second) listed_.push_back(host);
}

bool SyntheticAddresses::in_range(const policy::IpAddress& address) {
  return address.family == policy::Family::V4 && address.bytes[0] == kRange[0] &&
         (address.bytes[1] & 0xFEU) == kRange[1];
}

policy::IpAddress SyntheticAddresses::own() {
  return address_at(kOwnOffset);
}

policy::IpAddress SyntheticAddresses::address_of(const policy::HostName& host) {
  const auto listed = listed_offset_.find(host);
  return address_at(listed != listed_offset_.end() ? listed->second : lend(host));
}

std::uint32_t SyntheticAddresses::lend(const policy::HostName& host) {
  if (const auto known = lent_to_.find(host); known != lent_to_.end()) {
    recent_.splice(recent_.begin(), recent_, known->second);
    return known->second->offset;
  }
  auto offset = kFirstLent + static_cast<std::uint32_t>(recent_.size());
  if (recent_.size() == kMaxWildcardAddresses) {
    offset = recent_.back().offset;
    lent_to_.erase(recent_.back().host);
    recent_.pop_back();
  }
  recent_.push_front({host, offset});
  lent_to_.emplace(host, recent_.begin());
  lent_at_[offset] = recent_.begin();
  return offset;
}

const policy::HostName* SyntheticAddresses::host_at(const policy::IpAddress& address) const {
  if (!in_range(address)) return nullptr;
  const std::uint32_t offset = offset_in_range(address);
  if (const auto lent = lent_at_.find(offset); lent != lent_at_.end()) return &lent->second->host;
  if (offset < kFirstListed || offset - kFirstListed >= listed_.size()) return nullptr;
  return &listed_[offset - kFirstListed];
}

}  // namespace sallyport::dns
