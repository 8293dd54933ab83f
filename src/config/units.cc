#include "config/units.h"

#include <algorithm>

#include "base/text.h"
#include "policy/grant.h"
#include "policy/limits.h"

namespace sallyport::config {
namespace {

constexpr std::string_view kBurst = " burst ";

std::string_view unit_of(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of("0123456789"), text.size()));
}

std::optional<std::chrono::seconds> parse_period(std::string_view text) {
  if (text == "s") return std::chrono::seconds(1);
  if (text == "min") return std::chrono::minutes(1);
  if (text == "h") return std::chrono::hours(1);
  if (text == "day") return std::chrono::hours(24);
  return std::nullopt;
}

std::optional<std::uint64_t> parse_amount(std::string_view text, Amount amount) {
  const auto parsed = amount == Amount::Size ? parse_size(text) : parse_decimal(text, policy::kMaxRateAmount);
  if (!parsed || *parsed == 0 || *parsed > policy::kMaxRateAmount) return std::nullopt;
  return parsed;
}

}  // namespace

std::optional<std::uint64_t> parse_size(std::string_view text) {
  if (text == "unlimited") return UINT64_MAX;
  const std::string_view unit = unit_of(text);
  // Even so many GiB fit.
  const auto number = parse_decimal(text.substr(0, text.size() - unit.size()), UINT32_MAX);
  if (!number) return std::nullopt;
  if (unit == "B") return number;
  if (unit == "KiB") return *number << 10U;
  if (unit == "MiB") return *number << 20U;
  if (unit == "GiB") return *number << 30U;
  return std::nullopt;
}

std::optional<std::chrono::milliseconds> parse_time(std::string_view text, std::chrono::milliseconds max) {
  const std::string_view unit = unit_of(text);
  std::chrono::milliseconds one{0};
  if (unit == "ms") one = std::chrono::milliseconds(1);
  if (unit == "s") one = std::chrono::seconds(1);
  if (unit == "min") one = std::chrono::minutes(1);
  const auto number = parse_decimal(text.substr(0, text.size() - unit.size()), UINT32_MAX);
  if (one.count() == 0 || !number) return std::nullopt;
  const std::chrono::milliseconds time = static_cast<std::int64_t>(*number) * one;
  if (time < policy::kMinTimeout || time > max) return std::nullopt;
  return time;
}

std::optional<Rate> parse_rate(std::string_view text, Amount amount) {
  const std::size_t burst_at = text.find(kBurst);
  const std::string_view average = text.substr(0, burst_at);
  const std::size_t slash = average.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto per = parse_period(average.substr(slash + 1));
  const auto number = parse_amount(average.substr(0, slash), amount);
  if (!per || !number) return std::nullopt;
  Rate rate{.amount = *number, .per = *per, .burst = *number};
  if (burst_at != std::string_view::npos) {
    const auto burst = parse_amount(text.substr(burst_at + kBurst.size()), amount);
    if (!burst) return std::nullopt;
    rate.burst = *burst;
  } else if (amount == Amount::Number) {
    rate.burst = std::min(2 * *number, policy::kMaxRateAmount);
  }
  return rate;
}

}  // namespace sallyport::config
