// TLS on a socket: OpenSSL works on the descriptor itself, waiting for readiness by the worker; buffers are
// released while idle.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "net/stream.h"
#include "policy/host.h"

using SSL = struct ssl_st;
using SSL_CTX = struct ssl_ctx_st;

namespace sallyport::net {

struct SslContextFree {
  void operator()(SSL_CTX* context) const;
};
using SslContext = std::unique_ptr<SSL_CTX, SslContextFree>;

// Towards upstreams: TLS 1.2 or later, ALPN http/1.1, the certificate verified against `ca_pem` (empty: the
// system's roots, read now, so call it before confinement), no renegotiation.
Result<SslContext> make_client_context(std::string_view ca_pem);
// Verifies that the certificate names `host` (SNI is sent too). `deadline` covers the whole handshake. Fails
// with UpstreamTls and OpenSSL's reason, or UpstreamTimeout.
Task<Result<std::unique_ptr<Stream>>> connect_tls(Worker& worker, SSL_CTX& context, Fd socket,
                                                  policy::HostName host, Clock::duration limit);

// Towards the sandbox: the handshake on an accepted socket. The context (with its ClientHello callback, which
// finds `callback_argument` by SSL_get_app_data) is the caller's, and outlives the handshake. Fails with
// NotTls, ClientTimeout or ClientClosed; a refusal by the callback fails with NotTls too, and the caller
// knows better why.
struct AcceptedTls {
  std::unique_ptr<Stream> stream;
  SSL* ssl;  // the stream's own, for what the caller's callbacks attached to it
};
Task<Result<AcceptedTls>> accept_tls(Worker& worker, SSL_CTX& context, void* callback_argument, Fd socket,
                                     Clock::duration limit);

// What OpenSSL's thread-local error queue holds, in one line, and empties it.
std::string take_openssl_errors();

}  // namespace sallyport::net
