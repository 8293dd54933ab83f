// The requests of one connection, one after the other: each is judged by itself, and after one that cannot be
// read in exactly one way none is served any more.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "audit/event.h"
#include "egress/http_gateway.h"
#include "forward/usage.h"
#include "git/gateway.h"
#include "http/connection.h"
#include "net/task.h"
#include "policy/decide.h"

namespace sallyport::gate {

// What a session's requests have in common. All of it outlives every request.
struct Gateways {
  const git::Context& git;
  const egress::HttpContext& http;
  forward::Usage& usage;
};

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
// nor answered. `gateways` and `connection` outlive the call.
net::Task<std::optional<http::RequestHead>> serve_requests(Gateways gateways, RequestSource source,
                                                           http::Connection& connection);

}  // namespace sallyport::gate
