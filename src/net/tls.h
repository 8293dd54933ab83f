// TLS on a socket: OpenSSL works on the descriptor itself, waiting for readiness by the worker; buffers are
// released while idle.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "net/stream.h"
#include "policy/host.h"

using SSL = struct ssl_st;
using SSL_CTX = struct ssl_ctx_st;
using SSL_SESSION = struct ssl_session_st;

namespace sallyport::net {

struct SslContextFree {
  void operator()(SSL_CTX* context) const;
};
using SslContext = std::unique_ptr<SSL_CTX, SslContextFree>;

// Towards upstreams: TLS 1.2 or later, ALPN http/1.1, the certificate verified against `ca_pem` (empty: the
// system's roots, read now, so call it before confinement), no renegotiation.
Result<SslContext> make_client_context(std::string_view ca_pem);

// The TLS sessions of one upstream under one identity, which later connections resume. A resumed handshake
// shows no certificate: what was verified is what stood in the first one. So whoever shares this object among
// connections promises that they go to the same host by the same context; and a session is not resumed past
// its certificate's end, nor past kLife.
class TlsSessions {
 public:
  static constexpr std::size_t kMaxSessions = 2;
  // The upstream chooses how long its tickets are.
  static constexpr std::size_t kMaxTicketBytes = 4096;
  static constexpr Clock::duration kLife = std::chrono::minutes(10);

  TlsSessions() = default;
  ~TlsSessions();
  TlsSessions(const TlsSessions&) = delete;
  TlsSessions& operator=(const TlsSessions&) = delete;

  // Keeps a reference of its own, if it is one to keep.
  void put(SSL_SESSION& session);
  // The newest that may be resumed, with a reference for the caller; or null. One of TLS 1.3 is not given
  // again (RFC 8446, C.4).
  SSL_SESSION* take();
  std::size_t size() const { return sessions_.size(); }

 private:
  struct Kept {
    SSL_SESSION* session;
    Clock::time_point since;
  };
  std::deque<Kept> sessions_;  // oldest first
};

// Handshake messages that a peer may send between two pieces of data: tickets, key updates, requests to
// renegotiate. More of them end the connection.
inline constexpr int kMaxTlsMessages = 64;

// Verifies that the certificate names `host` (SNI is sent too). `limit` covers the whole handshake. Fails
// with UpstreamTls and OpenSSL's reason, or UpstreamTimeout. `sessions` may be null: nothing is resumed then.
Task<Result<std::unique_ptr<Stream>>> connect_tls(Worker& worker, SSL_CTX& context, Fd socket,
                                                  policy::HostName host, Clock::duration limit,
                                                  std::shared_ptr<TlsSessions> sessions = nullptr);

// Towards the sandbox: the handshake on an accepted socket. The context (with its ClientHello callback, which
// finds `callback_argument` by SSL_get_app_data) is the caller's, and outlives the handshake. Fails with
// NotTls, TlsPinned (the client does not accept the certificate), ClientTimeout or ClientClosed; a refusal by
// the callback fails with NotTls too, and the caller knows better why. `already_read` is what came from the
// socket before, as somebody looked at the ClientHello.
struct AcceptedTls {
  std::unique_ptr<Stream> stream;
  SSL* ssl;  // the stream's own, for what the caller's callbacks attached to it
};
Task<Result<AcceptedTls>> accept_tls(Worker& worker, SSL_CTX& context, void* callback_argument, Fd socket,
                                     Clock::duration limit, std::string already_read = "");

// What OpenSSL's thread-local error queue holds, in one line, and empties it.
std::string take_openssl_errors();

}  // namespace sallyport::net
