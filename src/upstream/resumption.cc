#include "upstream/resumption.h"

#include <algorithm>

namespace sallyport::upstream {

std::shared_ptr<net::TlsSessions> Resumption::of(const PoolKey& key) {
  const auto found = std::ranges::find_if(kept_, [&](const auto& kept) { return kept.first == key; });
  if (found != kept_.end()) {
    kept_.splice(kept_.end(), kept_, found);
  } else {
    if (kept_.size() == kMaxResumedKeys) kept_.pop_front();
    kept_.emplace_back(key, std::make_shared<net::TlsSessions>());
  }
  return kept_.back().second;
}

void Resumption::drop_credential(const std::string& credential) {
  std::erase_if(kept_, [&](const auto& kept) { return kept.first.credential == credential; });
}

}  // namespace sallyport::upstream
