#include "audit/coalesce.h"

#include <utility>

namespace sallyport::audit {

bool Coalescer::admit(const Event& event) {
  Tally& tally = tallies_[{event.kind, event.reason, event.entry}];
  if (tally.left == 0) {
    ++tally.counted;
    return false;
  }
  --tally.left;
  return true;
}

void Coalescer::count(const Event& event) {
  ++tallies_[{event.kind, event.reason, event.entry}].counted;
}

std::vector<Event> Coalescer::tell() {
  std::vector<Event> lines;
  for (auto& [sort, tally] : std::exchange(tallies_, {})) {
    if (tally.counted == 0) continue;
    Event line;
    line.kind = Kind::Coalesced;
    line.of = sort.kind;
    line.reason = sort.reason;
    line.entry = sort.entry;
    line.count = tally.counted;
    lines.push_back(std::move(line));
    tallies_[sort] = {.left = kBurstInFlood, .counted = 0};
  }
  return lines;
}

}  // namespace sallyport::audit
