// The requests of one connection, one after the other: each is judged by itself, and after one that cannot be
// read in exactly one way none is served any more.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "audit/event.h"
#include "egress/http_gateway.h"
#include "egress/tunnels.h"
#include "forward/usage.h"
#include "git/gateway.h"
#include "http/connection.h"
#include "net/task.h"
#include "policy/decide.h"

namespace sallyport::gate {

// Where requests and tunnels go under one policy.
struct Gateways {
  const git::Context& git;
  const egress::HttpContext& http;
  egress::Tunnels* tunnels;  // null where nothing but requests comes, as in some tests
  forward::Usage& usage;
};
// Those of the policy in force. A request or a tunnel takes them when it is judged, and holds them until it
// ends (owners: these and the gate); everything else looks here each time, and keeps nothing across a wait.
using GatewaysInForce = std::shared_ptr<const Gateways>;

// Why a request is one too many, for the audit log.
inline constexpr std::string_view kTooFast = "requests come too fast";

// Where a connection's requests come from.
struct RequestSource {
  audit::Entry entry = audit::Entry::Tls;
  std::string destination;  // for the audit log
  policy::Scheme scheme = policy::Scheme::Https;
  std::uint16_t port = policy::kHttpsPort;
  // The host that all of them must name; none: each goes to the one that it names.
  std::optional<policy::HostName> host;
};

// The line of a request that could not even be read, with a new id.
audit::Event event_of(const RequestSource& source);

// Until either side ends the connection. At a proxy a CONNECT ends it too: that is returned, neither judged
// nor answered. `in_force` and `connection` outlive the call. Each request is judged by the policy that is in
// force when its head has come; where that does not open a connection to the source's host any more, as it
// is, the connection ends: at once, or behind the answer that is under way.
net::Task<std::optional<http::RequestHead>> serve_requests(const GatewaysInForce& in_force,
                                                           RequestSource source,
                                                           http::Connection& connection);

}  // namespace sallyport::gate
