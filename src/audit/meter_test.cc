#include "audit/meter.h"

#include <gtest/gtest.h>

#include <numeric>

namespace sallyport::audit {
namespace {

std::uint64_t at(const Meter::ByReason& counts, Reason reason) {
  return counts.at(static_cast<std::size_t>(reason));
}

Event event(Kind kind, Reason reason = Reason::None) {
  Event result;
  result.kind = kind;
  result.reason = reason;
  return result;
}

TEST(Meter, CountsByKindAndReason) {
  Meter meter;
  meter.add(event(Kind::Begin));
  meter.add(event(Kind::Refused, Reason::HostNotAllowed));
  meter.add(event(Kind::Refused, Reason::HostNotAllowed));
  meter.add(event(Kind::End));
  meter.add(event(Kind::End, Reason::UpstreamTimeout));
  meter.add(event(Kind::Credential));
  meter.add(event(Kind::Credential, Reason::CredentialUnavailable));
  meter.add(event(Kind::Alarm, Reason::ProcessDied));
  for (const Kind kind : {Kind::SessionStart, Kind::SessionEnd, Kind::Refs, Kind::Reload, Kind::Coalesced}) {
    meter.add(event(kind, Reason::Internal));
  }
  meter.add_lost();
  EXPECT_EQ(meter.allowed(), 1U);
  EXPECT_EQ(meter.lost(), 1U);
  EXPECT_EQ(at(meter.refused(), Reason::HostNotAllowed), 2U);
  EXPECT_EQ(at(meter.ended(), Reason::None), 1U);
  EXPECT_EQ(at(meter.ended(), Reason::UpstreamTimeout), 1U);
  EXPECT_EQ(at(meter.credentials(), Reason::None), 1U);
  EXPECT_EQ(at(meter.credentials(), Reason::CredentialUnavailable), 1U);
  EXPECT_EQ(at(meter.alarms(), Reason::ProcessDied), 1U);
  for (const auto* counts : {&meter.refused(), &meter.ended(), &meter.credentials(), &meter.alarms()}) {
    EXPECT_EQ(at(*counts, Reason::Internal), 0U);
  }
}

TEST(Meter, AddsUpBytesAndTime) {
  using std::chrono::microseconds;
  Meter meter;
  for (const auto duration :
       {microseconds(0), microseconds(5'000), microseconds(5'001), microseconds(700'000'000)}) {
    Event end = event(Kind::End);
    end.bytes_in = 3;
    end.bytes_out = 5;
    end.duration = duration;
    meter.add(end);
  }
  EXPECT_EQ(meter.bytes_in(), 12U);
  EXPECT_EQ(meter.bytes_out(), 20U);
  EXPECT_EQ(meter.duration(), microseconds(700'010'001));
  EXPECT_EQ(meter.durations()[0], 2U) << "a bound is in its own part";
  EXPECT_EQ(meter.durations()[1], 1U);
  const auto& parts = meter.durations();
  EXPECT_EQ(std::accumulate(parts.begin(), parts.end(), std::uint64_t{0}), 3U) << "the longest is in none";
}

}  // namespace
}  // namespace sallyport::audit
