// Reports of packets that a sandbox's rules refused. An attacker chooses the packets' bytes, so only a short
// head of each is copied, and every field is read within its bounds.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "os/endpoint.h"

namespace sallyport::os {

// Bytes of each refused packet that the kernel copies: an IPv6 head and the ports behind it fit.
inline constexpr std::uint32_t kNflogCopyBytes = 64;
// Reports that one read_nflog() returns at most; the others wait.
inline constexpr std::size_t kMaxReportsPerRead = 64;

struct RefusedPacket {
  std::uint8_t protocol = 0;  // IPPROTO_*
  Endpoint destination;       // port 0 when the protocol has none
};

// A socket on kNflogGroup of the current network namespace, non-blocking. Needs CAP_NET_ADMIN over it.
Result<Fd> open_nflog();

// What waits, without blocking; packets that cannot be read are left out.
Result<std::vector<RefusedPacket>> read_nflog(int socket);

// The head of one IP packet.
bool parse_packet_head(std::string_view packet, RefusedPacket& report);
// One datagram of the socket, with any number of netlink messages.
std::vector<RefusedPacket> parse_nflog(std::string_view datagram);

}  // namespace sallyport::os
