// Which of a client's header fields go upstream. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "http/request_head.h"
#include "upstream/exchange.h"

namespace sallyport::egress {

// Whether what identifies the client to the host goes along: not where the gateway itself identifies, so
// that nobody else's account can be used there.
enum class OwnCredentials : std::uint8_t { Pass, Drop };

// Without hop-by-hop fields and whatever Connection names (RFC 9110, 7.6.1), framing, Host, Expect, what
// proxies say of a client (it would be believed), and what makes another method of the judged one. '_' counts
// as '-': CGI makes them one (RFC 3875, 4.1.18).
std::vector<upstream::Header> forwarded_fields(const http::RequestHead& head, OwnCredentials own);

// A complete opening handshake of a WebSocket (RFC 6455, 4.1), as the client's half.
bool asks_for_websocket(const http::RequestHead& head);

}  // namespace sallyport::egress
