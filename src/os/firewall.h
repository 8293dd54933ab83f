// The rules inside a sandbox's namespace, and loading them by libnftables (no program is started).
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace sallyport::os {

// Where refused packets are reported: NFLOG's group number inside the namespace.
inline constexpr std::uint16_t kNflogGroup = 7;
// New connections of one sandbox: more are dropped before the kernel keeps a record of them.
inline constexpr int kMaxNewConnectionsPerSecond = 2000;
inline constexpr int kMaxNewConnectionsBurst = 4000;

struct DoorPorts {
  std::uint16_t tcp = 0;
  std::uint16_t udp = 0;
};

// The ruleset's text, for `nft -f` and for people.
std::string ruleset(DoorPorts doors);

// Loads it into the current network namespace, all or nothing. The error holds libnftables' words.
Status load_ruleset(const std::string& rules);

// Shortens the kernel's memory of ended connections in the current namespace, so that the limit above also
// bounds how many records there are at once.
Status shorten_connection_records();

}  // namespace sallyport::os
