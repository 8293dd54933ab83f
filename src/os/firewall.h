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
// How long the kernel remembers a connection that was not made, or has ended.
inline constexpr int kRecordSeconds = 10;
// So no sandbox has the kernel remember more connections than this at once, of some 300 bytes each: those of
// the limit above, and those that are open, which are the gate's and as many as wait at the doors.
inline constexpr int kMaxConnectionRecords =
    kMaxNewConnectionsPerSecond * kRecordSeconds + kMaxNewConnectionsBurst + 4096;

struct DoorPorts {
  std::uint16_t tcp = 0;
  std::uint16_t udp = 0;
};

// The ruleset's text, for `nft -f` and for people.
std::string ruleset(DoorPorts doors);

// Loads it into the current network namespace, all or nothing. The error holds libnftables' words.
Status load_ruleset(const std::string& rules);

// Shortens the kernel's memory of ended connections in the current namespace to kRecordSeconds.
Status shorten_connection_records();

}  // namespace sallyport::os
