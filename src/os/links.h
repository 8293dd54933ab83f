// The proof that a namespace holds nothing but loopback, and the watch that it stays so.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace sallyport::os {

struct Link {
  int index = 0;
  std::string name;
  bool loopback = false;
  bool up = false;
  int addresses = 0;  // IPv4 and IPv6
};

// A NETLINK_ROUTE socket of the current network namespace, close-on-exec; `groups` as RTMGRP_*, 0 for none.
Result<Fd> open_route_socket(std::uint32_t groups);

// The devices of the namespace in which `route_socket` was opened.
Result<std::vector<Link>> list_links(int route_socket);

// Only `lo`, and the kernel's inert fallback devices (tunl0, sit0, ...: they appear by themselves in every
// namespace) as long as they are down and without address. The error names the device.
Status only_loopback(const std::vector<Link>& links);

// Reads away all waiting events of a subscribed, non-blocking socket. Their content does not matter: whatever
// they say (also that some were lost), the caller lists the links again.
Status drain_link_events(int watch_socket);

}  // namespace sallyport::os
