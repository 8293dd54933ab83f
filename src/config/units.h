// Numbers with units, as they are written in both files. nullopt for anything else.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/rate.h"

namespace sallyport::config {

// "10MiB"; B, KiB, MiB or GiB. UINT64_MAX for "unlimited".
std::optional<std::uint64_t> parse_size(std::string_view text);

// "10s": a whole number of ms, s or min, from kMinTimeout to `max`.
std::optional<std::chrono::milliseconds> parse_time(std::string_view text, std::chrono::milliseconds max);

// What a rate counts: 100, or 500MiB.
enum class Amount : std::uint8_t { Number, Size };

// "100/s burst 200"; s, min, h or day. Without a burst: twice the amount of numbers, the very amount of
// sizes. Nothing in it is 0 or more than kMaxRateAmount.
std::optional<Rate> parse_rate(std::string_view text, Amount amount);

}  // namespace sallyport::config
