// The addresses that stand for allowed names inside a sandbox. They come from 198.18.0.0/15, the range that
// RFC 2544 sets apart for benchmarks: nothing real lives there, and each connection that arrives at one of
// them was meant for exactly one name.
//
// Names that rules list follow from the Grant alone, so that a restarted gate gives out the same addresses
// and what a client remembers stays true. Names below a wildcard get theirs when they are asked for, from the
// second half of the range; a sandbox chooses how many, so there are few, and the one that was asked for
// longest ago makes room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <unordered_map>
#include <vector>

#include "policy/address.h"
#include "policy/grant.h"

namespace sallyport::dns {

// Names that rules list; those behind are treated like a wildcard's.
inline constexpr std::size_t kMaxListedAddresses = 120'000;
// Names below wildcards at once.
inline constexpr std::size_t kMaxWildcardAddresses = 4'096;

class SyntheticAddresses {
 public:
  explicit SyntheticAddresses(const policy::Grant& grant);
  SyntheticAddresses(const SyntheticAddresses&) = delete;
  SyntheticAddresses& operator=(const SyntheticAddresses&) = delete;

  // The names that this grant lists get addresses too. Those that have one keep it, allowed or not: it is the
  // name that is judged.
  void add(const policy::Grant& grant);

  // Any address of the range, given out or not.
  static bool in_range(const policy::IpAddress& address);
  // The gateway's own address inside a sandbox: its name server and its proxy.
  static policy::IpAddress own();

  // The address of a name that is allowed, one that it keeps as long as it can.
  policy::IpAddress address_of(const policy::HostName& host);
  // The host that this address stands for, or nullptr.
  const policy::HostName* host_at(const policy::IpAddress& address) const;

  std::size_t wildcard_names() const { return recent_.size(); }

 private:
  struct Lent {
    policy::HostName host;
    std::uint32_t offset;
  };
  std::uint32_t lend(const policy::HostName& host);
  void list(const policy::HostName& host);

  std::vector<policy::HostName> listed_;  // by offset
  std::unordered_map<policy::HostName, std::uint32_t> listed_offset_;
  std::list<Lent> recent_;  // asked for most recently first
  std::unordered_map<policy::HostName, std::list<Lent>::iterator> lent_to_;
  std::unordered_map<std::uint32_t, std::list<Lent>::iterator> lent_at_;
};

}  // namespace sallyport::dns
