// DNS over HTTPS, in whichever of its forms a request has it: a resolver that no rule of ours would judge.
// Pure.
#pragma once

#include "http/request_head.h"
#include "policy/http_path.h"

namespace sallyport::egress {

// RFC 8484 (media type, the "dns" of a GET, the usual path), its JSON cousins, oblivious DoH (RFC 9230), and
// MASQUE's tunnels (RFC 9298).
bool is_dns_over_https(const http::RequestHead& head, const policy::HttpPath& path);

}  // namespace sallyport::egress
