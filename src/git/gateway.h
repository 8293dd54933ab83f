// One git request of a sandbox, from its head to its audit line: judge, record, open the upstream, move the
// bytes, record again. docs/git-protocol.md is the contract with clients.
#pragma once

#include "audit/recorder.h"
#include "forward/live.h"
#include "forward/served.h"
#include "http/connection.h"
#include "http/request_head.h"
#include "net/task.h"
#include "policy/grant.h"
#include "upstream/exchange.h"

namespace sallyport::git {

// What a session's requests have in common. All of it outlives every serve().
struct Context {
  const policy::Grant& grant;
  audit::Recorder& recorder;
  upstream::Opener& vault;   // for rules that name a credential
  upstream::Opener& direct;  // anonymous
  forward::Live& live;
};

using forward::ClientSide;
using forward::Fate;

// Serves the request whose head next_request() gave, whatever it asks: also the refusal of everything that is
// not git. Leaves exactly one audit line (refused) or a Begin and an End with the same id.
// `context`, `client` and `connection` outlive the call.
net::Task<Fate> serve(const Context& context, const ClientSide& client, http::Connection& connection,
                      http::RequestHead head);

}  // namespace sallyport::git
