// What one session uses of its limits: one object for all of its requests and tunnels.
#pragma once

#include "base/rate.h"
#include "base/slots.h"
#include "policy/host.h"
#include "policy/limits.h"

namespace sallyport::forward {

struct Usage {
  explicit Usage(const policy::Limits& limits)
      : requests(limits.requests),
        requests_to(limits.requests_per_host),
        tunnels_to(limits.tunnels_per_host),
        connects(limits.pending_connects),
        upload(limits.upload),
        download(limits.download),
        counts_bytes(limits.upload || limits.download) {}
  Usage(const Usage&) = delete;
  Usage& operator=(const Usage&) = delete;

  TokenBucket requests;  // that begin: HTTP requests, tunnels, and what is refused in their stead
  SlotsFor<policy::HostName> requests_to;
  SlotsFor<policy::HostName> tunnels_to;
  Slots connects;  // upstream connections that are being made
  // Bytes of bodies, of WebSockets and of tunnels.
  TokenBucket upload;
  TokenBucket download;
  const bool counts_bytes;  // one of these two has a limit
};

}  // namespace sallyport::forward
