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

}  // namespace
}  // namespace sallyport
