#include "policy/limits.h"

#include <algorithm>

namespace sallyport::policy {
namespace {

// Both hold: where one has the lower average and the other the lower burst, the result has each from another.
std::optional<Rate> lower_rate(const std::optional<Rate>& a, const std::optional<Rate>& b) {
  if (!a || !b) return a ? a : b;
  Rate lower = a->per_second() <= b->per_second() ? *a : *b;
  lower.burst = std::min(a->burst, b->burst);
  return lower;
}

}  // namespace

Limits Limits::highest() {
  Limits limits;
  limits.connections = kMaxAtOnce;
  limits.requests_per_host = kMaxAtOnce;
  limits.tunnels_per_host = kMaxAtOnce;
  limits.pending_connects = kMaxAtOnce;
  limits.new_connections = std::nullopt;
  limits.requests = std::nullopt;
  limits.dns = std::nullopt;
  limits.tunnel_idle = kMaxTunnelIdle;
  limits.tunnel_life = kMaxTunnelLife;
  return limits;
}

Limits Limits::lower_of(const Limits& a, const Limits& b) {
  Limits lower;
  lower.connections = std::min(a.connections, b.connections);
  lower.requests_per_host = std::min(a.requests_per_host, b.requests_per_host);
  lower.tunnels_per_host = std::min(a.tunnels_per_host, b.tunnels_per_host);
  lower.pending_connects = std::min(a.pending_connects, b.pending_connects);
  lower.new_connections = lower_rate(a.new_connections, b.new_connections);
  lower.requests = lower_rate(a.requests, b.requests);
  lower.dns = lower_rate(a.dns, b.dns);
  lower.upload = lower_rate(a.upload, b.upload);
  lower.download = lower_rate(a.download, b.download);
  lower.tunnel_idle = std::min(a.tunnel_idle, b.tunnel_idle);
  lower.tunnel_life = std::min(a.tunnel_life, b.tunnel_life);
  lower.tunnel_upload = std::min(a.tunnel_upload, b.tunnel_upload);
  lower.tunnel_download = std::min(a.tunnel_download, b.tunnel_download);
  return lower;
}

}  // namespace sallyport::policy
