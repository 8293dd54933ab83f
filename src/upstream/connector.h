// Everything between a judged request and its exchange: the pool, or dialling and TLS. Gate and vault use the
// same; what differs is whether a credential goes along.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/secret.h"
#include "net/dial.h"
#include "net/tls.h"
#include "net/worker.h"
#include "policy/grant.h"
#include "upstream/exchange.h"
#include "upstream/http_exchange.h"
#include "upstream/pool.h"
#include "upstream/resumption.h"

namespace sallyport::upstream {

// What goes upstream beside the request. `line` is one whole field line without CRLF, "Authorization: Basic
// ...", as a snapshot: the exchange keeps it until the answer begins (owners: the credential's holder and the
// exchanges under way), so it may be replaced at any time.
struct Credential {
  std::string name;                    // the pool's key; "": anonymous
  std::shared_ptr<const Secret> line;  // null: anonymous
};

class Connector {
 public:
  // Reads the trust anchors of every host in the grant now. Those of the system are in files: call it before
  // confinement, or with `system_roots`, a context that net::make_client_context("") made then. The worker
  // and the resolver outlive the connector; an exchange may be destroyed after it, but not used.
  static Result<std::unique_ptr<Connector>> make(net::Worker& worker, net::Resolver& resolver,
                                                 std::shared_ptr<const policy::Grant> grant,
                                                 SSL_CTX* system_roots = nullptr);

  // Reaches request.host and sends the head. What dial() and connect_tls() fail with; HeadTooLarge; Internal,
  // before anything is opened, for what may not go upstream (request_head()). A request without body that
  // fails on a reused connection before the answer's first byte is tried once more on a new one.
  net::Task<Result<std::unique_ptr<Exchange>>> open(Request request, Credential credential);

  // Nothing that was opened with it is used again: neither connections nor TLS sessions.
  void drop_credential(const std::string& credential);

  const Pool& pool() const { return *pool_; }

 private:
  Status add_context(const std::string& ca_pem);
  Connector(net::Worker& worker, net::Resolver& resolver, std::shared_ptr<const policy::Grant> grant);

  // On a new connection. `head` is what request_head() made.
  net::Task<Result<std::unique_ptr<HttpExchange>>> open_new(Request request, std::string head,
                                                            Credential credential);
  net::Task<Result<std::unique_ptr<HttpExchange>>> start(std::unique_ptr<net::Stream> stream,
                                                         const Request& request, std::string head,
                                                         const Credential& credential);
  // A new connection, with TLS unless the key's scheme is Http.
  net::Task<Result<std::unique_ptr<net::Stream>>> connect(PoolKey key);

  net::Worker& worker_;
  net::Resolver& resolver_;
  std::shared_ptr<const policy::Grant> grant_;
  std::map<std::string, net::SslContext> contexts_;  // by the CA's PEM text
  std::shared_ptr<Pool> pool_;                       // the exchanges hold it weakly
  Resumption resumption_;
};

}  // namespace sallyport::upstream
