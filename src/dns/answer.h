// What a DNS question is answered with. Pure: no question leaves the host, whatever it asks.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "audit/event.h"
#include "dns/synthetic.h"
#include "policy/grant.h"

namespace sallyport::dns {

// Short, so that a narrowed policy is soon what clients see too. Negative answers shorter still.
inline constexpr std::uint32_t kSyntheticTtlSeconds = 60;
inline constexpr std::uint32_t kNegativeTtlSeconds = 30;

struct Reply {
  std::string bytes;                    // empty: nothing is sent back
  std::optional<audit::Event> refused;  // for the audit log; the destination is the caller's to add
};

// An allowed name: its synthetic address for A, no data for every other type (AAAA, HTTPS and SVCB among
// them: their answers would name addresses). Any other name: NXDOMAIN. ANY, zone transfers and classes but
// IN: REFUSED, whatever the name. Both say why in an Extended DNS Error, with `request_id`, to who asks with
// EDNS.
Reply answer(std::string_view query, const policy::Grant& grant, SyntheticAddresses& addresses,
             std::string_view request_id);

}  // namespace sallyport::dns
