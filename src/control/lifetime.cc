#include "control/lifetime.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>

#include "base/text.h"

namespace sallyport::control {

BootClock::time_point BootClock::now() {
  timespec time{};
  ::clock_gettime(CLOCK_BOOTTIME, &time);
  return time_point(std::chrono::seconds(time.tv_sec) +
                    std::chrono::floor<duration>(std::chrono::nanoseconds(time.tv_nsec)));
}

std::optional<std::chrono::seconds> parse_lifetime(std::string_view text) {
  const std::string_view unit = text.substr(std::min(text.find_first_not_of("0123456789"), text.size()));
  std::chrono::seconds one{0};
  if (unit == "s") one = std::chrono::seconds(1);
  if (unit == "min") one = std::chrono::minutes(1);
  if (unit == "h") one = std::chrono::hours(1);
  if (unit == "day") one = std::chrono::hours(24);
  const auto number = parse_decimal(text.substr(0, text.size() - unit.size()), UINT32_MAX);
  if (one.count() == 0 || !number || *number == 0) return std::nullopt;
  const std::chrono::seconds time = static_cast<std::int64_t>(*number) * one;
  if (time > kMaxLifetime) return std::nullopt;
  return time;
}

std::optional<BootClock::duration> Lifetime::left(BootClock::time_point now, BootClock::time_point started,
                                                  std::optional<BootClock::time_point> last_use) const {
  std::optional<BootClock::duration> result;
  if (ttl) result = started + *ttl - now;
  if (idle) {
    const BootClock::duration until = std::max(started, last_use.value_or(started)) + *idle - now;
    result = std::min(until, result.value_or(until));
  }
  return result;
}

std::string Lifetime::reason(BootClock::time_point now, BootClock::time_point started) const {
  if (ttl && now >= started + *ttl) return fmt::format("its time was up (ttl of {} s)", ttl->count());
  return fmt::format("it made no use of a credential for {} s (idle)",
                     idle.value_or(std::chrono::seconds(0)).count());
}

}  // namespace sallyport::control
