// One git request of a sandbox, from its head to its audit line: judge, record, open the upstream, move the
// bytes, record again. docs/git-protocol.md is the contract with clients.
#pragma once

#include <cstdint>
#include <string>

#include "audit/event.h"
#include "audit/recorder.h"
#include "http/connection.h"
#include "http/request_head.h"
#include "net/task.h"
#include "policy/grant.h"
#include "policy/host.h"
#include "upstream/exchange.h"

namespace sallyport::git {

// What a session's requests have in common. All of it outlives every serve().
struct Context {
  const policy::Grant& grant;
  audit::Recorder& recorder;
  upstream::Opener& vault;   // for rules that name a credential
  upstream::Opener& direct;  // anonymous
};

// How the client came to us, by what the kernel and TLS say and not by what the request says.
struct ClientSide {
  audit::Entry entry = audit::Entry::Tls;
  std::string destination;  // the address and port that the client addressed, for the audit log
  policy::HostName host;    // the host of the connection: its SNI
  std::uint16_t port = 443;
};

// What is to become of the connection. Close: the caller awaits connection.finish() (harmless after an
// abort) and drops it.
enum class Fate : std::uint8_t { KeepAlive, Close };

// Serves the request whose head next_request() gave, whatever it asks: also the refusal of everything that is
// not git. Leaves exactly one audit line (refused) or a Begin and an End with the same id.
// `context`, `client` and `connection` outlive the call.
net::Task<Fate> serve(const Context& context, const ClientSide& client, http::Connection& connection,
                      http::RequestHead head);

}  // namespace sallyport::git
