// The sockets at which doors stand.
#pragma once

#include <cstdint>

#include "base/fd.h"
#include "base/result.h"
#include "os/endpoint.h"

namespace sallyport::os {

// Connections that wait while a gate restarts.
inline constexpr int kDoorBacklog = 1024;

enum class ListenerKind { Tcp, Udp };

struct Listener {
  Fd fd;  // bound, non-blocking, and listening when Tcp; Udp has IP_PKTINFO on
  ListenerKind kind = ListenerKind::Tcp;
  sa_family_t family = AF_INET;
  std::uint16_t port = 0;
};

// Port 0: one that is free.
Result<Listener> open_listener(const Endpoint& where, ListenerKind kind);

}  // namespace sallyport::os
