// One plain HTTP request of a sandbox, from its head to its audit line: judge by the [[allow]] rules, record,
// carry, record again. What may make one reading of it differ from another's, or speak for the gateway, does
// not go upstream; everything else does, and so does the answer.
#pragma once

#include "audit/recorder.h"
#include "forward/live.h"
#include "forward/served.h"
#include "http/connection.h"
#include "http/request_head.h"
#include "net/task.h"
#include "policy/grant.h"
#include "upstream/exchange.h"

namespace sallyport::egress {

// What a session's requests have in common. All of it outlives every serve_http().
struct HttpContext {
  const policy::Grant& grant;
  audit::Recorder& recorder;
  upstream::Opener& direct;
  forward::Live& live;
};

// Serves the request whose head next_request() gave. Leaves exactly one audit line (refused) or a Begin and
// an End with the same id. A request that a rule lets become a WebSocket is relayed until either side ends
// it. `context`, `client` and `connection` outlive the call.
net::Task<forward::Fate> serve_http(const HttpContext& context, const forward::ClientSide& client,
                                    http::Connection& connection, http::RequestHead head);

}  // namespace sallyport::egress
