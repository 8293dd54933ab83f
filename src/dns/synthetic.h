// The addresses that stand for allowed names inside a sandbox. They come from 198.18.0.0/15, the range that
// RFC 2544 sets apart for benchmarks: nothing real lives there, and each connection that arrives at one of
// them was meant for exactly one name.
//
// They follow from the Grant alone (its hosts in order), so that a restarted gate gives out the same ones and
// what a client remembers stays true. There is no allocation at run time, so nothing that a sandbox asks can
// make the table grow.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "policy/address.h"
#include "policy/grant.h"

namespace sallyport::dns {

// Hosts that one Grant may name: far more than its rules (10,000), far fewer than the range's addresses.
inline constexpr std::size_t kMaxSyntheticAddresses = 100'000;

class SyntheticAddresses {
 public:
  explicit SyntheticAddresses(const policy::Grant& grant);

  // Any address of the range, given out or not.
  static bool in_range(const policy::IpAddress& address);
  // nullopt for a host that the Grant does not name.
  std::optional<policy::IpAddress> address_of(const policy::HostName& host) const;
  // The host that this address stands for, or nullptr.
  const policy::HostName* host_at(const policy::IpAddress& address) const;

 private:
  std::vector<policy::HostName> hosts_;  // by offset
  std::map<policy::HostName, std::uint32_t> offset_of_;
};

}  // namespace sallyport::dns
