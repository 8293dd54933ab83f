// Which refusals and alarms get a line of their own, and which are counted: a sandbox can make a million of
// them, and shall not fill the disk. The first ones of each sort are told at once; a count follows.
#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "audit/event.h"

namespace sallyport::audit {

class Coalescer {
 public:
  // How often tell() is called.
  static constexpr std::chrono::seconds kInterval{10};
  // Lines of one sort (kind, reason, entry) in one interval.
  static constexpr std::size_t kBurst = 50;
  // The same in the intervals of a flood that goes on: until one passes in which nothing had to be counted.
  static constexpr std::size_t kBurstInFlood = 5;

  // True: the event gets its line. False: it is counted.
  bool admit(const Event& event);
  // Counts an event that gets no line whatever admit() would say.
  void count(const Event& event);

  // The end of an interval: a Coalesced event for each sort of which something was counted.
  std::vector<Event> tell();

 private:
  // Reasons and entries are few, so the sorts are.
  struct Sort {
    Kind kind;
    Reason reason;
    Entry entry;
    auto operator<=>(const Sort&) const = default;
  };
  struct Tally {
    std::size_t left = kBurst;
    std::uint64_t counted = 0;
  };

  std::map<Sort, Tally> tallies_;
};

}  // namespace sallyport::audit
