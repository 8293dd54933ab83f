#include "policy/limits.h"

#include <gtest/gtest.h>

namespace sallyport::policy {
namespace {

TEST(Limits, LowerOfTheHighestIsTheOther) {
  EXPECT_EQ(Limits::lower_of(Limits{}, Limits::highest()), Limits{});
  EXPECT_EQ(Limits::lower_of(Limits::highest(), Limits{}), Limits{});
}

TEST(Limits, LowerOfTwoTakesTheSmallerOfEach) {
  Limits a;
  a.connections = 1;
  a.requests_per_host = 9;
  a.tunnels_per_host = 2;
  a.pending_connects = 9;
  a.upload = Rate{.amount = 10, .per = std::chrono::hours(1), .burst = 10};
  a.tunnel_idle = std::chrono::seconds(1);
  a.tunnel_life = std::chrono::seconds(9);
  a.tunnel_upload = 1;
  Limits b;
  b.connections = 9;
  b.requests_per_host = 3;
  b.tunnels_per_host = 9;
  b.pending_connects = 4;
  b.upload = Rate{.amount = 1, .per = std::chrono::seconds(1), .burst = 5};
  b.tunnel_idle = std::chrono::seconds(9);
  b.tunnel_life = std::chrono::seconds(2);
  b.tunnel_download = 2;
  Limits wanted;
  wanted.connections = 1;
  wanted.requests_per_host = 3;
  wanted.tunnels_per_host = 2;
  wanted.pending_connects = 4;
  wanted.upload = Rate{.amount = 10, .per = std::chrono::hours(1), .burst = 5};
  wanted.tunnel_idle = std::chrono::seconds(1);
  wanted.tunnel_life = std::chrono::seconds(2);
  wanted.tunnel_upload = 1;
  wanted.tunnel_download = 2;
  EXPECT_EQ(Limits::lower_of(a, b), wanted);
  EXPECT_EQ(Limits::lower_of(b, a), wanted);
}

}  // namespace
}  // namespace sallyport::policy
