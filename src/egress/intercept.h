// Ends a sandbox's TLS under the session's own authority, for the names that its judge lets through and for
// no other.
#pragma once

#include <expected>
#include <functional>
#include <memory>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "egress/client_hello.h"
#include "egress/hello_peek.h"
#include "egress/leaf_cache.h"
#include "net/stream.h"
#include "net/task.h"
#include "net/tls.h"
#include "net/worker.h"

namespace sallyport::egress {

struct Intercepted {
  std::unique_ptr<net::Stream> stream;
  policy::HostName host;  // from the SNI: judged, and what is to be dialled
};

class Interceptor {
 public:
  // Whether a connection to that name may be opened. Called in the middle of a handshake, at once after the
  // name was read and before anything is sent: it must not wait.
  using Judge = std::function<Status(const policy::HostName& host)>;

  // TLS 1.2 and 1.3, ALPN http/1.1 only, no resumption: every connection names its host, and is judged anew.
  static Result<std::unique_ptr<Interceptor>> make(net::Worker& worker, net::KeyPair ca);
  ~Interceptor();
  Interceptor(const Interceptor&) = delete;
  Interceptor& operator=(const Interceptor&) = delete;

  // The judge is asked although the ClientHello was looked at: of what OpenSSL reads, and of a second one. A
  // refused name sees the alert unrecognized_name, and the judge's error is the refusal's. Besides: NoSni,
  // IpLiteral, BadRequest (a malformed name, or a client that speaks no HTTP/1.1), TooLarge, NotTls,
  // TlsPinned, ClientTimeout, ClientClosed.
  net::Task<std::expected<Intercepted, HandshakeRefusal>> accept(PeekedHello peeked, Judge judge);

 private:
  struct Handshake;
  struct Callbacks;

  Interceptor(net::Worker& worker, net::KeyPair ca);

  net::Worker& worker_;
  LeafCache leaves_;
  net::SslContext context_;
};

}  // namespace sallyport::egress
