// The name in a TLS ClientHello, from the extension's bytes and not from OpenSSL's idea of them: its check
// lets empty names, ports, addresses, spaces and '*' through.
#pragma once

#include <string_view>

#include "base/result.h"
#include "policy/host.h"

namespace sallyport::egress {

// `extension` is the data of server_name (RFC 6066, 3): a list of exactly one entry, a host_name. Refuses
// with NoSni (no name in it), IpLiteral or BadRequest.
Result<policy::HostName> parse_server_name(std::string_view extension);

}  // namespace sallyport::egress
