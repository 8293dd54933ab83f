// Connections that wait for their next request. One key is one upstream and one credential: a connection
// never serves two of either.
#pragma once

#include <compare>
#include <cstdint>
#include <list>
#include <memory>
#include <string>

#include "net/stream.h"
#include "net/worker.h"
#include "policy/host.h"
#include "upstream/exchange.h"
#include "upstream/limits.h"

namespace sallyport::upstream {

struct PoolKey {
  policy::HostName host;
  std::uint16_t port;
  std::string credential;  // its name; "": anonymous
  Scheme scheme = Scheme::Https;

  auto operator<=>(const PoolKey&) const = default;
};

class Pool {
 public:
  explicit Pool(net::Worker& worker, net::Clock::duration life = kIdleLife);
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // The connection of that key that came back last; nullptr when there is none that is still open and silent.
  std::unique_ptr<net::Stream> take(const PoolKey& key);
  // Keeps it if there is room and nothing came behind the answer; closes it otherwise.
  void put(const PoolKey& key, std::unique_ptr<net::Stream> stream);
  // Closes those of a credential: it was replaced or withdrawn.
  void drop_credential(const std::string& credential);

  std::size_t size() const { return idle_.size(); }

 private:
  struct Idle {
    PoolKey key;
    std::unique_ptr<net::Stream> stream;
    net::Clock::time_point since;
  };
  void drop_old();

  net::Clock::duration life_;
  std::list<Idle> idle_;  // oldest first
  net::Deadline sweep_;   // armed while idle_ is not empty
};

}  // namespace sallyport::upstream
