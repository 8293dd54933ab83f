#include "control/lifetime.h"

#include <gtest/gtest.h>

namespace sallyport::control {
namespace {

using std::chrono::seconds;

const BootClock::time_point kStart{seconds(1000)};

TEST(Lifetime, IsWrittenWithAUnit) {
  EXPECT_EQ(parse_lifetime("30s"), seconds(30));
  EXPECT_EQ(parse_lifetime("20min"), seconds(1200));
  EXPECT_EQ(parse_lifetime("8h"), seconds(8 * 3600));
  EXPECT_EQ(parse_lifetime("366day"), kMaxLifetime);
  for (const char* bad :
       {"", "8", "h", "0s", "-1s", "1.5h", " 8h", "8h ", "8H", "367day", "99999999999h", "5ms"}) {
    EXPECT_EQ(parse_lifetime(bad), std::nullopt) << bad;
  }
}

TEST(Lifetime, HasNoEndUnlessItIsTold) {
  EXPECT_EQ(Lifetime{}.left(kStart + seconds(99999), kStart, std::nullopt), std::nullopt);
}

TEST(Lifetime, EndsWithItsTtlWhateverIsUsed) {
  const Lifetime lifetime{.ttl = seconds(60), .idle = std::nullopt};
  EXPECT_EQ(lifetime.left(kStart + seconds(10), kStart, kStart + seconds(9)), seconds(50));
  EXPECT_LE(*lifetime.left(kStart + seconds(60), kStart, kStart + seconds(60)), seconds(0));
  EXPECT_EQ(lifetime.reason(kStart + seconds(60), kStart), "its time was up (ttl of 60 s)");
}

TEST(Lifetime, IsProlongedByUseAlone) {
  const Lifetime lifetime{.ttl = seconds(100), .idle = seconds(30)};
  EXPECT_EQ(lifetime.left(kStart + seconds(10), kStart, std::nullopt), seconds(20));
  EXPECT_EQ(lifetime.left(kStart + seconds(40), kStart, kStart + seconds(35)), seconds(25));
  EXPECT_EQ(lifetime.left(kStart + seconds(90), kStart, kStart + seconds(89)), seconds(10)) << "the ttl's";
  EXPECT_LE(*lifetime.left(kStart + seconds(65), kStart, kStart + seconds(35)), seconds(0));
  EXPECT_EQ(lifetime.reason(kStart + seconds(65), kStart), "it made no use of a credential for 30 s (idle)");
}

TEST(BootClock, GoesOn) {
  const auto before = BootClock::now();
  EXPECT_GE(BootClock::now(), before);
}

}  // namespace
}  // namespace sallyport::control
