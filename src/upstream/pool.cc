#include "upstream/pool.h"

#include <algorithm>
#include <utility>

namespace sallyport::upstream {

Pool::Pool(net::Worker& worker, net::Clock::duration life)
    : life_(life), sweep_(worker, [this] { drop_old(); }) {}

std::unique_ptr<net::Stream> Pool::take(const PoolKey& key) {
  for (auto at = idle_.end(); at != idle_.begin();) {
    --at;
    if (at->key != key) continue;
    auto stream = std::move(at->stream);
    const bool fresh = net::Clock::now() - at->since < life_;
    at = idle_.erase(at);
    if (fresh && stream->quiet()) return stream;
  }
  return nullptr;
}

void Pool::put(const PoolKey& key, std::unique_ptr<net::Stream> stream) {
  const auto same = std::ranges::count_if(idle_, [&](const Idle& idle) { return idle.key == key; });
  if (static_cast<std::size_t>(same) >= kMaxIdlePerKey || !stream->quiet()) return;
  if (idle_.size() == kMaxIdle) idle_.pop_front();
  stream->no_limit();
  if (idle_.empty()) sweep_.set(life_);
  idle_.push_back({key, std::move(stream), net::Clock::now()});
}

void Pool::drop_credential(const std::string& credential) {
  std::erase_if(idle_, [&](const Idle& idle) { return idle.key.credential == credential; });
}

void Pool::drop_old() {
  const auto now = net::Clock::now();
  while (!idle_.empty() && now - idle_.front().since >= life_) idle_.pop_front();
  if (!idle_.empty()) sweep_.set(idle_.front().since + life_ - now);
}

}  // namespace sallyport::upstream
