// How long a session may last: in all, and without making use of a credential.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace sallyport::control {

// Of either, so that no sum overflows.
inline constexpr std::chrono::hours kMaxLifetime{24 * 366};
// Looked at so often: a machine that slept finds out within that.
inline constexpr std::chrono::seconds kLifetimeLook{30};

// Goes on while the machine sleeps, and is set by nobody (CLOCK_BOOTTIME).
struct BootClock {
  using duration = std::chrono::milliseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<BootClock>;
  static constexpr bool is_steady = true;
  static time_point now();
};

// "30s", "20min", "8h" or "7day"; nullopt for anything else, for nothing and for more than kMaxLifetime.
std::optional<std::chrono::seconds> parse_lifetime(std::string_view text);

struct Lifetime {
  std::optional<std::chrono::seconds> ttl;  // from the start
  std::optional<std::chrono::seconds>
      idle;  // from the start, or the last use of a credential that an upstream took

  bool is_limited() const { return ttl || idle; }
  // Until its end at the soonest; nothing is left at or past it. nullopt: it has none.
  std::optional<BootClock::duration> left(BootClock::time_point now, BootClock::time_point started,
                                          std::optional<BootClock::time_point> last_use) const;
  // Why it is over, when nothing is left.
  std::string reason(BootClock::time_point now, BootClock::time_point started) const;
};

}  // namespace sallyport::control
