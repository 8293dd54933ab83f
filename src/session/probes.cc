#include "session/probes.h"

#include <fmt/format.h>

#include <cstdlib>

#include "base/random.h"
#include "sandbox/runtime.h"
#include "session/request.h"

namespace sallyport::session {
namespace {

// Addresses that stand for the whole internet: documentation ranges, so that a leak disturbs nobody, and the
// address of every cloud's metadata service.
std::vector<os::Endpoint> far_addresses(bool with_ipv6) {
  std::vector<os::Endpoint> result = {
      *os::endpoint_from("192.0.2.1", 443),
      *os::endpoint_from("203.0.113.7", 80),
      *os::endpoint_from("169.254.169.254", 80),
  };
  if (with_ipv6) result.push_back(*os::endpoint_from("2001:db8::1", 443));
  return result;
}

}  // namespace

sandbox::Phase1 ask_with_shut_doors(const std::vector<sandbox::Mount>& mounts, const sandbox::Decoys& decoys,
                                    sandbox::Terminal terminal, sandbox::Users users) {
  const char* canary = std::getenv(kCanaryVariable);
  return {.terminal = terminal,
          .users = users,
          .unreachable = far_addresses(true),
          .decoys = decoys.list(),
          .mounts = sandbox::expected_mounts(mounts),
          .canary = canary != nullptr ? canary : ""};
}

sandbox::Phase2 ask_with_open_doors(const wire::GateProbe& probe, const sandbox::Decoys& decoys,
                                    bool with_ipv6) {
  return {.must_be_door = far_addresses(with_ipv6),
          .decoys = decoys.list(),
          .probe_line = probe.probe_line,
          .door_line = probe.door_line};
}

wire::GateProbe make_gate_probe() {
  return {true, fmt::format("sallyport-probe {}\n", random_hex(16)),
          fmt::format("sallyport-door {}\n", random_hex(16))};
}

}  // namespace sallyport::session
