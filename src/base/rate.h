// How much of something there may be in a while, and the token bucket that holds it to that. Time is the
// caller's, so that tests and pure code need no clock.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>

namespace sallyport {

// `amount` in each `per` on average, `burst` at once.
struct Rate {
  std::uint64_t amount = 0;
  std::chrono::seconds per{1};
  std::uint64_t burst = 0;

  double per_second() const { return static_cast<double>(amount) / static_cast<double>(per.count()); }
  bool operator==(const Rate&) const = default;
};

class TokenBucket {
 public:
  using Time = std::chrono::steady_clock::time_point;

  TokenBucket(double per_second, double burst) : per_second_(per_second), burst_(burst), tokens_(burst) {}
  // nullopt: always full.
  explicit TokenBucket(const std::optional<Rate>& rate)
      : TokenBucket(rate ? rate->per_second() : std::numeric_limits<double>::infinity(),
                    rate ? static_cast<double>(rate->burst) : std::numeric_limits<double>::infinity()) {}

  // Takes one token; false when there is none.
  [[nodiscard]] bool take(Time now) {
    fill(now);
    if (tokens_ < 1.0) return false;
    tokens_ -= 1.0;
    return true;
  }

  // Of what is only known once it has happened: takes `count`, and what is missing is owed. False while
  // anything is.
  [[nodiscard]] bool spend(Time now, std::uint64_t count) {
    fill(now);
    tokens_ -= static_cast<double>(count);
    return tokens_ >= 0;
  }
  bool has_any(Time now) {
    fill(now);
    return tokens_ >= 1.0;
  }
  // Until it has, if nobody else takes one; 0 when it has.
  std::chrono::duration<double> time_to_any(Time now) {
    if (has_any(now)) return {};
    return std::chrono::duration<double>((1.0 - tokens_) / per_second_);
  }

 private:
  void fill(Time now) {
    if (now <= filled_at_) return;
    // The first call finds a full bucket, however long ago the clock began.
    const std::chrono::duration<double> passed = now - filled_at_;
    tokens_ = std::min(burst_, tokens_ + passed.count() * per_second_);
    filled_at_ = now;
  }

  double per_second_;
  double burst_;
  double tokens_;
  Time filled_at_;
};

}  // namespace sallyport
