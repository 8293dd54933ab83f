// What the gateways of all kinds of requests share: where a request came from, what becomes of its
// connection, and its lines in the audit log.
#pragma once

#include <cstdint>
#include <string>

#include "audit/event.h"
#include "http/request_head.h"
#include "net/worker.h"
#include "policy/decide.h"
#include "policy/host.h"

namespace sallyport::forward {

struct Outcome;

// How the client came to us, by what the kernel and TLS say and not by what the request says.
struct ClientSide {
  audit::Entry entry = audit::Entry::Tls;
  std::string destination;  // the address and port that the client addressed, for the audit log
  policy::HostName host;    // the host of the connection: its SNI
  std::uint16_t port = 443;
  policy::Scheme scheme = policy::Scheme::Https;
};

// What is to become of the connection. Close: the caller awaits connection.finish() (harmless after an
// abort) and drops it.
enum class Fate : std::uint8_t { KeepAlive, Close };

// What every line of the request says, with a new id.
audit::Event event_of(const ClientSide& client, const http::RequestHead& head);
// The End line of the request whose Begin `event` was.
audit::Event end_of(const audit::Event& event, const Outcome& outcome, net::Clock::time_point started);

// For the particulars of a refusal by policy, behind a line end: the rule that would allow `operation`; ""
// when none can, as past a [[deny]].
std::string how_to_allow(Reason reason, const policy::Operation& operation);

}  // namespace sallyport::forward
