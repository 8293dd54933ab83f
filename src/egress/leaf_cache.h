// The certificates that a session's clients are shown: one for each name, made on first use under the
// session's own authority.
#pragma once

#include <chrono>
#include <list>
#include <map>

#include "base/rate.h"
#include "base/result.h"
#include "net/certificate.h"
#include "policy/host.h"

namespace sallyport::egress {

// A session needs few; but a wildcard allows any number of names, and a name that is refused gets one too, so
// that its client can be told. The least recently used goes first.
inline constexpr std::size_t kMaxLeaves = 512;
// Made, after as many as are kept. As many connections as a session may begin, so that only who lifts that
// limit meets this one.
inline constexpr double kMaxLeavesPerSecond = 250;
// A leaf lives 24 hours from its making; well before its end the next client gets a new one.
inline constexpr std::chrono::hours kLeafRefresh{12};

class LeafCache {
 public:
  explicit LeafCache(net::KeyPair ca);

  // Valid until the next call. TooMany when they would be made too fast.
  Result<const net::KeyPair*> leaf_for(const policy::HostName& host,
                                       std::chrono::steady_clock::time_point now);
  std::size_t size() const { return by_use_.size(); }
  const net::KeyPair& authority() const { return ca_; }

 private:
  struct Entry {
    policy::HostName host;
    net::KeyPair leaf;
    std::chrono::steady_clock::time_point made;
  };

  net::KeyPair ca_;
  net::PrivateKey key_;  // of every leaf: making one takes longer than signing
  TokenBucket making_{kMaxLeavesPerSecond, kMaxLeaves};
  std::list<Entry> by_use_;  // the latest first
  std::map<policy::HostName, std::list<Entry>::iterator> by_host_;
};

}  // namespace sallyport::egress
