// A token bucket: `per_second` on average, `burst` at once. Time is the caller's, so that tests and pure code
// need no clock.
#pragma once

#include <algorithm>
#include <chrono>

namespace sallyport {

class TokenBucket {
 public:
  using Time = std::chrono::steady_clock::time_point;

  TokenBucket(double per_second, double burst) : per_second_(per_second), burst_(burst), tokens_(burst) {}

  // Takes one token; false when there is none.
  [[nodiscard]] bool take(Time now) {
    if (now > filled_at_) {
      // The first call finds a full bucket, however long ago the clock began.
      const std::chrono::duration<double> passed = now - filled_at_;
      tokens_ = std::min(burst_, tokens_ + passed.count() * per_second_);
      filled_at_ = now;
    }
    if (tokens_ < 1.0) return false;
    tokens_ -= 1.0;
    return true;
  }

 private:
  double per_second_;
  double burst_;
  double tokens_;
  Time filled_at_;
};

}  // namespace sallyport
