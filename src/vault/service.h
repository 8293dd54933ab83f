// The vault's work: takes lanes from the gate, judges each request on its own, and carries it upstream with
// the credential. It takes the gate for hostile: a gate can use a credential where the grant allows it, and
// can neither read one nor send it anywhere else.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "audit/event.h"
#include "base/fd.h"
#include "base/secret.h"
#include "net/worker.h"
#include "policy/grant.h"
#include "upstream/connector.h"
#include "upstream/exchange.h"
#include "vault/lane.h"

namespace sallyport::vault {

// How long a gate may take. Values, so that tests can shorten them.
struct LaneLimits {
  // For the rest of a request's head, from its first byte.
  net::Clock::duration head = std::chrono::seconds(10);
  // Nothing moves on the lane, in either direction, between a request's head and its answer's end. Above
  // upstream's own limits, so that theirs tell what happened.
  net::Clock::duration silence = lane_silence({});
  // After an error: to read it and to hang up.
  net::Clock::duration linger = std::chrono::seconds(10);
};

// Alarms that one minute may have: a gate that misbehaves in a loop must not fill the log.
inline constexpr int kMaxAlarmsPerMinute = 30;

class Service {
 public:
  // Reaches an upstream: Connector::open, or a test's.
  using Open = std::function<net::Task<Result<std::unique_ptr<upstream::Exchange>>>(upstream::Request,
                                                                                    upstream::Credential)>;
  // Leaves an event with the warden. When that fails, nothing is sent.
  using Report = std::function<Status(audit::Event)>;

  struct Setup {
    std::string session;
    std::shared_ptr<const policy::Grant> grant;
    Open open;
    Report report;
    LaneLimits limits;
    std::uint64_t uses_left = UINT64_MAX;  // requests that get a credential
  };

  // The worker outlives the service; lanes under way go on without it.
  Service(net::Worker& worker, Setup setup);

  // The token of the credential with that name from now on. A rule's host decides how it is presented.
  void set_credential(const std::string& name, Secret token);
  // Requests that need it are refused from now on.
  void drop_credential(const std::string& name);

  // The packet socket on which a gate hands over lanes. It ends with the gate; a new gate brings another.
  void use_gate(Fd channel);

  struct State;

 private:
  std::shared_ptr<State> state_;  // owners: the service and the coroutines of its lanes
};

}  // namespace sallyport::vault
