// What one session may use, at once and in a while. docs/policy.md repeats the defaults; the operator's file
// changes them, and a policy file lowers what it has left.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "base/rate.h"

namespace sallyport::policy {

struct Limits {
  std::uint32_t connections = 256;  // of the sandbox with the gate, whatever they are for
  std::uint32_t requests_per_host = 128;
  std::uint32_t tunnels_per_host = 64;
  std::uint32_t pending_connects = 32;  // upstream connections that are being made

  // nullopt: unlimited.
  std::optional<Rate> new_connections = Rate{.amount = 250, .burst = 4000};  // held to by the kernel
  std::optional<Rate> requests = Rate{.amount = 100, .burst = 200};          // and tunnels
  std::optional<Rate> dns = Rate{.amount = 50, .burst = 100};                // questions
  std::optional<Rate> upload = std::nullopt;                                 // bytes to upstreams
  std::optional<Rate> download = std::nullopt;                               // bytes from upstreams

  std::chrono::milliseconds tunnel_idle = std::chrono::seconds(600);
  std::chrono::milliseconds tunnel_life = std::chrono::hours(24);
  std::uint64_t tunnel_upload = UINT64_MAX;  // bytes of one tunnel; UINT64_MAX: unlimited
  std::uint64_t tunnel_download = UINT64_MAX;

  // Where everything is as high as it may be.
  static Limits highest();
  // Of each limit the lower.
  static Limits lower_of(const Limits& a, const Limits& b);

  bool operator==(const Limits&) const = default;
};
// Of each of those that count what is there at once.
inline constexpr std::uint32_t kMaxAtOnce = 16'384;
// Of new_connections, amount and burst each; its period is a second.
inline constexpr std::uint64_t kMaxNewConnections = 1'000'000;
inline constexpr std::chrono::milliseconds kMaxTunnelIdle = std::chrono::hours(24);
inline constexpr std::chrono::milliseconds kMaxTunnelLife = std::chrono::hours(24 * 30);
// Larger ones would not be exact as they are counted, and are as good as none.
inline constexpr std::uint64_t kMaxRateAmount = std::uint64_t{1} << 52U;
inline constexpr std::chrono::seconds kMaxRatePeriod = std::chrono::hours(24);

}  // namespace sallyport::policy
