#include "base/rate.h"

#include <gtest/gtest.h>

namespace sallyport {
namespace {

using std::chrono::milliseconds;

TEST(TokenBucket, GivesTheBurstAndThenTheRate) {
  TokenBucket bucket(50, 100);
  TokenBucket::Time now{std::chrono::hours(5)};
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(bucket.take(now)) << i;
  EXPECT_FALSE(bucket.take(now));
  now += milliseconds(20);
  EXPECT_TRUE(bucket.take(now));
  EXPECT_FALSE(bucket.take(now));
}

TEST(TokenBucket, SavesUpNoMoreThanTheBurst) {
  TokenBucket bucket(50, 3);
  TokenBucket::Time now{std::chrono::hours(5)};
  EXPECT_TRUE(bucket.take(now));
  now += std::chrono::hours(1);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(bucket.take(now)) << i;
  EXPECT_FALSE(bucket.take(now));
}

TEST(TokenBucket, OwesWhatWasSpentBeyondIt) {
  TokenBucket bucket(Rate{.amount = 60, .per = std::chrono::minutes(1), .burst = 10});
  TokenBucket::Time now{std::chrono::hours(5)};
  EXPECT_TRUE(bucket.spend(now, 10));
  EXPECT_FALSE(bucket.has_any(now));
  EXPECT_FALSE(bucket.spend(now, 2));
  now += std::chrono::seconds(2);
  EXPECT_FALSE(bucket.has_any(now));
  now += std::chrono::seconds(1);
  EXPECT_TRUE(bucket.has_any(now));
  EXPECT_TRUE(bucket.take(now));
  EXPECT_FALSE(bucket.take(now));
}

TEST(TokenBucket, KnowsWhenTheNextOneComes) {
  TokenBucket bucket(Rate{.amount = 60, .per = std::chrono::minutes(1), .burst = 2});
  TokenBucket::Time now{std::chrono::hours(5)};
  EXPECT_TRUE(bucket.take(now));
  EXPECT_EQ(bucket.time_to_any(now).count(), 0);
  EXPECT_TRUE(bucket.take(now));
  EXPECT_DOUBLE_EQ(bucket.time_to_any(now).count(), 1);
  now += milliseconds(750);
  EXPECT_DOUBLE_EQ(bucket.time_to_any(now).count(), 0.25);
  EXPECT_FALSE(bucket.spend(now, 10));
  EXPECT_DOUBLE_EQ(bucket.time_to_any(now).count(), 10.25);
  EXPECT_EQ(TokenBucket(std::optional<Rate>()).time_to_any(now).count(), 0);
}

TEST(TokenBucket, IsAlwaysFullWithoutARate) {
  TokenBucket bucket{std::optional<Rate>()};
  TokenBucket::Time now{std::chrono::hours(5)};
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(bucket.spend(now, UINT64_MAX)) << i;
  now += milliseconds(1);
  EXPECT_TRUE(bucket.has_any(now));
}

}  // namespace
}  // namespace sallyport
