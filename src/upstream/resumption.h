// The TLS sessions that new connections resume, kept apart as the pool keeps connections apart: one upstream
// and one credential never resume what another left.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <utility>

#include "net/tls.h"
#include "upstream/pool.h"

namespace sallyport::upstream {

class Resumption {
 public:
  // Of that key from now on; the key that was not asked for longest makes room.
  std::shared_ptr<net::TlsSessions> of(const PoolKey& key);
  // Forgets those of a credential: it was replaced or withdrawn.
  void drop_credential(const std::string& credential);

  std::size_t size() const { return kept_.size(); }

 private:
  // Owners of the sessions: this, and the connections made with that key.
  std::list<std::pair<PoolKey, std::shared_ptr<net::TlsSessions>>> kept_;  // least used first
};

}  // namespace sallyport::upstream
