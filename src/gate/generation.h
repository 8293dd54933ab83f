// What one policy in force is made of, from its rules to its connections upstream. Another policy gets all of
// it anew; the one before lasts as long as requests and tunnels that began under it.
#pragma once

#include <openssl/types.h>

#include <memory>

#include "audit/recorder.h"
#include "base/result.h"
#include "forward/live.h"
#include "forward/usage.h"
#include "gate/requests.h"
#include "net/dial.h"
#include "net/worker.h"
#include "policy/grant.h"
#include "upstream/exchange.h"

namespace sallyport::gate {

// What all policies of a gate have in common, and what they borrow.
struct Lasting {
  net::Worker& worker;
  net::Resolver& resolver;
  SSL_CTX* system_roots;  // as upstream::Connector::make() takes it
  audit::Recorder& recorder;
  forward::Usage& usage;
  forward::Live& live;
  upstream::Opener& vault;
};

// They own the grant. The system's roots and the certificates of the grant's hosts are all that it reads.
Result<GatewaysInForce> put_in_force(const Lasting& lasting, std::shared_ptr<const policy::Grant> grant);

}  // namespace sallyport::gate
