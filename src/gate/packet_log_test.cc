#include "gate/packet_log.h"

#include <gtest/gtest.h>
#include <netinet/in.h>

#include "gate/testing.h"

namespace sallyport::gate {
namespace {

constexpr std::chrono::steady_clock::time_point kNow{std::chrono::hours(1)};

TEST(PacketLines, NameProtocolAndDestination) {
  struct Case {
    os::RefusedPacket packet;
    audit::Entry entry;
    Reason reason;
    std::string_view destination;
  };
  const std::vector<Case> cases{
      {{IPPROTO_UDP, testing::endpoint("192.0.2.1", 443)},
       audit::Entry::Udp,
       Reason::UdpRefused,
       "192.0.2.1:443"},
      {{IPPROTO_ICMP, testing::endpoint("192.0.2.1", 0)},
       audit::Entry::Icmp,
       Reason::IcmpRefused,
       "192.0.2.1"},
      {{IPPROTO_ICMPV6, testing::endpoint("2001:db8::1", 0)},
       audit::Entry::Icmp,
       Reason::IcmpRefused,
       "2001:db8::1"},
      {{IPPROTO_SCTP, testing::endpoint("192.0.2.1", 0)},
       audit::Entry::Icmp,
       Reason::IcmpRefused,
       "192.0.2.1"},
      {{IPPROTO_TCP, testing::endpoint("192.0.2.1", 22)},
       audit::Entry::Tcp,
       Reason::PortNotAllowed,
       "192.0.2.1:22"},
  };
  for (const auto& test : cases) {
    const auto lines = PacketLines().lines_for({test.packet}, kNow);
    ASSERT_EQ(lines.size(), 1U);
    EXPECT_EQ(lines[0].kind, audit::Kind::Refused);
    EXPECT_EQ(lines[0].entry, test.entry);
    EXPECT_EQ(lines[0].reason, test.reason);
    EXPECT_EQ(lines[0].destination, test.destination);
  }
}

TEST(PacketLines, AreFewUnderAFloodAndTellHowManyPacketsGotNone) {
  PacketLines log;
  const os::RefusedPacket packet{IPPROTO_UDP, testing::endpoint("192.0.2.1", 53)};
  const std::vector<os::RefusedPacket> flood(1000, packet);
  EXPECT_EQ(log.lines_for(flood, kNow).size(), 20U);
  EXPECT_EQ(log.untold(), 980U);
  const auto later = log.lines_for({packet}, kNow + std::chrono::seconds(1));
  ASSERT_EQ(later.size(), 1U);
  EXPECT_EQ(later[0].detail, "980 more packets were refused before");
  EXPECT_EQ(log.untold(), 0U);
}

}  // namespace
}  // namespace sallyport::gate
