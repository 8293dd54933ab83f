// Reads the ClientHello of a connection without ending its TLS: what becomes of it depends on the name in
// there. The bytes are taken from the socket (not MSG_PEEK: a client that drips would wake us for bytes that
// we have seen, and a receive buffer may be smaller than a ClientHello), and go on with the result: to the
// upstream as they are, or to the Interceptor.
#pragma once

#include <chrono>
#include <expected>
#include <string>

#include "base/fd.h"
#include "base/reason.h"
#include "egress/client_hello.h"
#include "net/task.h"
#include "net/worker.h"

namespace sallyport::egress {

// From the beginning to the end of the handshake, or of the ClientHello where TLS is not ended here.
inline constexpr std::chrono::seconds kHandshakeLimit{10};

struct PeekedHello {
  Fd socket;
  std::string bytes;  // all that was read: the ClientHello, and what came right behind it
  ClientHello hello;
  net::Clock::time_point until;  // of the whole handshake
};

// `already_read` came from the socket before, behind a CONNECT. Refuses as parse_client_hello() does, which
// the client sees as an alert, as HelloReader does, and with ClientTimeout or ClientClosed.
net::Task<std::expected<PeekedHello, HandshakeRefusal>> peek_hello(
    net::Worker& worker, Fd socket, std::string already_read = "",
    net::Clock::duration limit = kHandshakeLimit);

// Refuses a ClientHello that was peeked at by an alert in clear: protocol_version for NotTls, else
// unrecognized_name. As far as it can be sent at once.
void send_alert(const Fd& socket, Reason reason);

}  // namespace sallyport::egress
