#include "gate/packet_log.h"

#include <gtest/gtest.h>
#include <netinet/in.h>

#include "gate/testing.h"

namespace sallyport::gate {
namespace {

TEST(RefusedPacket, IsALineWithProtocolAndDestination) {
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
    const audit::Event line = refusal_of(test.packet);
    EXPECT_EQ(line.kind, audit::Kind::Refused);
    EXPECT_EQ(line.entry, test.entry);
    EXPECT_EQ(line.reason, test.reason);
    EXPECT_EQ(line.destination, test.destination);
  }
}

}  // namespace
}  // namespace sallyport::gate
