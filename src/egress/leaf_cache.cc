#include "egress/leaf_cache.h"

#include <utility>

namespace sallyport::egress {

LeafCache::LeafCache(net::KeyPair ca) : ca_(std::move(ca)) {}

Result<const net::KeyPair*> LeafCache::leaf_for(const policy::HostName& host,
                                                std::chrono::steady_clock::time_point now) {
  if (const auto found = by_host_.find(host); found != by_host_.end()) {
    const auto entry = found->second;
    if (now - entry->made < kLeafRefresh) {
      by_use_.splice(by_use_.begin(), by_use_, entry);
      return &entry->leaf;
    }
    by_use_.erase(entry);
    by_host_.erase(found);
  }
  if (!making_.take(now)) return fail(Reason::TooMany, "certificates for new names come too fast");
  auto leaf = net::make_leaf(ca_, host, net::share(key_));
  if (!leaf) return fail(std::move(leaf));
  if (!key_) key_ = net::share(leaf->key);
  if (by_use_.size() == kMaxLeaves) {
    by_host_.erase(by_use_.back().host);
    by_use_.pop_back();
  }
  by_use_.push_front({host, *std::move(leaf), now});
  by_host_.emplace(host, by_use_.begin());
  return &by_use_.front().leaf;
}

}  // namespace sallyport::egress
