#include "audit/coalesce.h"

#include <gtest/gtest.h>

namespace sallyport::audit {
namespace {

Event refusal(Reason reason, Entry entry = Entry::Tcp) {
  Event event;
  event.kind = Kind::Refused;
  event.reason = reason;
  event.entry = entry;
  return event;
}

std::size_t admitted(Coalescer& coalescer, const Event& event, std::size_t times) {
  std::size_t lines = 0;
  for (std::size_t i = 0; i < times; ++i) lines += coalescer.admit(event) ? 1 : 0;
  return lines;
}

TEST(Coalescer, GivesEachEventItsLineAtOrdinaryRates) {
  Coalescer coalescer;
  for (int interval = 0; interval < 100; ++interval) {
    EXPECT_EQ(admitted(coalescer, refusal(Reason::IpLiteral), Coalescer::kBurst), Coalescer::kBurst);
    EXPECT_TRUE(coalescer.tell().empty());
  }
}

TEST(Coalescer, CountsWhatComesPastTheFirstOnes) {
  Coalescer coalescer;
  EXPECT_EQ(admitted(coalescer, refusal(Reason::IpLiteral), 1'000'000), Coalescer::kBurst);
  const auto told = coalescer.tell();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].kind, Kind::Coalesced);
  EXPECT_EQ(told[0].of, Kind::Refused);
  EXPECT_EQ(told[0].reason, Reason::IpLiteral);
  EXPECT_EQ(told[0].entry, Entry::Tcp);
  EXPECT_EQ(told[0].count, 1'000'000 - Coalescer::kBurst);
  EXPECT_TRUE(coalescer.tell().empty()) << "told twice";
}

TEST(Coalescer, GivesAFloodThatGoesOnFewLinesUntilItIsOver) {
  Coalescer coalescer;
  admitted(coalescer, refusal(Reason::IpLiteral), 1000);
  for (int interval = 0; interval < 10; ++interval) {
    EXPECT_EQ(coalescer.tell().size(), 1U);
    EXPECT_EQ(admitted(coalescer, refusal(Reason::IpLiteral), 1000), Coalescer::kBurstInFlood);
  }
  EXPECT_EQ(coalescer.tell().size(), 1U);
  EXPECT_TRUE(coalescer.tell().empty());
  EXPECT_EQ(admitted(coalescer, refusal(Reason::IpLiteral), 1000), Coalescer::kBurst);
}

TEST(Coalescer, LetsNoSortHideAnother) {
  Coalescer coalescer;
  admitted(coalescer, refusal(Reason::IpLiteral), 1000);
  EXPECT_TRUE(coalescer.admit(refusal(Reason::RepoNotGranted)));
  EXPECT_TRUE(coalescer.admit(refusal(Reason::IpLiteral, Entry::Udp)));
  Event alarm = refusal(Reason::IpLiteral);
  alarm.kind = Kind::Alarm;
  EXPECT_TRUE(coalescer.admit(alarm));
}

TEST(Coalescer, CountsWhatIsToHaveNoLine) {
  Coalescer coalescer;
  coalescer.count(refusal(Reason::IpLiteral));
  const auto told = coalescer.tell();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].count, 1U);
}

}  // namespace
}  // namespace sallyport::audit
