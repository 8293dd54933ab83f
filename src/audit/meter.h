// What happened in all sessions of a warden, in numbers: counted from the audit events as they pass. Labels
// are reasons and other words of ours, never a host, a path or anything else that a sandbox chose, so that
// there are no more numbers tomorrow than today.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <limits>

#include "audit/event.h"

namespace sallyport::audit {

class Meter {
 public:
  // A number for each reason.
  using ByReason = std::array<std::uint64_t, std::numeric_limits<std::uint8_t>::max() + 1>;
  // Upper ends of the parts of the histogram of durations; longer ones are in none.
  static constexpr std::array<std::chrono::milliseconds, 15> kBounds{
      std::chrono::milliseconds(5),      std::chrono::milliseconds(10),
      std::chrono::milliseconds(25),     std::chrono::milliseconds(50),
      std::chrono::milliseconds(100),    std::chrono::milliseconds(250),
      std::chrono::milliseconds(500),    std::chrono::milliseconds(1'000),
      std::chrono::milliseconds(2'500),  std::chrono::milliseconds(5'000),
      std::chrono::milliseconds(10'000), std::chrono::milliseconds(30'000),
      std::chrono::milliseconds(60'000), std::chrono::milliseconds(300'000),
      std::chrono::milliseconds(600'000)};

  // Every event, also one that got no line of its own.
  void add(const Event& event);
  // An event that the log did not take.
  void add_lost() { ++lost_; }

  std::uint64_t allowed() const { return allowed_; }
  std::uint64_t lost() const { return lost_; }
  const ByReason& refused() const { return refused_; }
  const ByReason& ended() const { return ended_; }  // of what was allowed; None: as it should
  const ByReason& credentials() const { return credentials_; }
  const ByReason& alarms() const { return alarms_; }
  std::uint64_t bytes_in() const { return bytes_in_; }
  std::uint64_t bytes_out() const { return bytes_out_; }
  // How many lasted no longer than that bound, and longer than the one before it.
  const std::array<std::uint64_t, kBounds.size()>& durations() const { return durations_; }
  std::chrono::microseconds duration() const { return duration_; }  // of all together

 private:
  void add_end(const Event& event);

  std::uint64_t allowed_ = 0;
  std::uint64_t lost_ = 0;
  ByReason refused_{};
  ByReason ended_{};
  ByReason credentials_{};
  ByReason alarms_{};
  std::uint64_t bytes_in_ = 0;
  std::uint64_t bytes_out_ = 0;
  std::array<std::uint64_t, kBounds.size()> durations_{};
  std::chrono::microseconds duration_{0};
};

}  // namespace sallyport::audit
