// The rules inside a sandbox's namespace, and loading them by libnftables (no program is started).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/rate.h"
#include "base/result.h"

namespace sallyport::os {

// Where refused packets are reported: NFLOG's group number inside the namespace.
inline constexpr std::uint16_t kNflogGroup = 7;
// New connections of one sandbox, unless the operator says another rate: more are dropped before the kernel
// keeps a record of them. The burst is for tools that fetch much at once; the rate is what
// kMaxConnectionRecords allows for long.
inline constexpr int kMaxNewConnectionsPerSecond = 250;
inline constexpr int kMaxNewConnectionsBurst = 4000;
inline constexpr Rate kNewConnections{.amount = kMaxNewConnectionsPerSecond,
                                      .burst = kMaxNewConnectionsBurst};
// How long the kernel remembers a connection that was not made, or has ended.
inline constexpr int kRecordSeconds = 10;
// A record that has expired is kept, and counted, until the kernel comes by: it looks through all of them
// once in 60 s at the latest (nf_conntrack_core.c, GC_SCAN_INTERVAL_MAX), and takes out 64,000 a second, of
// 262,144 that there are by default.
inline constexpr int kSweepSeconds = 60 + 5;
// Those that are open: the gate's, unless the operator lets it have more, and as many as wait at the doors.
inline constexpr int kMaxOpenRecords = 4096;
// So, at that rate, no sandbox has the kernel remember more connections than this at once, of some 300 bytes
// each: nothing but a counted packet makes a record, and each is gone in time.
inline constexpr int kMaxConnectionRecords = kMaxNewConnectionsBurst +
                                             kMaxNewConnectionsPerSecond * (kRecordSeconds + kSweepSeconds) +
                                             kMaxOpenRecords;

struct DoorPorts {
  std::uint16_t tcp = 0;
  std::uint16_t udp = 0;
};

// The ruleset's text, for `nft -f` and for people. The rate is one in seconds; nullopt: unlimited.
std::string ruleset(DoorPorts doors, const std::optional<Rate>& new_connections);

// Loads it into the current network namespace, all or nothing. The error holds libnftables' words.
Status load_ruleset(const std::string& rules);

// Shortens the kernel's memory of connections in the current namespace that are not open to kRecordSeconds,
// and has it take up none of which it did not see the beginning: that was not counted.
Status limit_connection_records();

}  // namespace sallyport::os
