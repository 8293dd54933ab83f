#include "session/host_doors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace sallyport::session {
namespace {

using ::testing::HasSubstr;
using enum wire::HostDoorUse;

TEST(HostDoors, AreOpenedOnThePortsThatAreFree) {
  const auto opened = open_host_doors({{Proxy, "127.0.0.1:0"},
                                       {Dns, "127.0.0.1:0"},
                                       {Fixed, "127.0.0.2:0=https://forge.test"},
                                       {Fixed, "127.0.0.3:0=http://forge.test:8080"}},
                                      1000);
  ASSERT_TRUE(opened) << opened.error().detail;
  const auto& doors = opened->doors.message.doors;
  EXPECT_EQ(opened->doors.message.owner, 1000U);
  ASSERT_EQ(doors.size(), 5U);
  ASSERT_EQ(opened->doors.fds.size(), 6U);
  ASSERT_EQ(opened->addresses.size(), 4U);
  for (std::size_t i = 0; i < doors.size(); ++i) {
    const auto bound = os::local_endpoint(opened->doors.fds[i + 1].get());
    ASSERT_TRUE(bound);
    EXPECT_NE(bound->port, 0);
    EXPECT_EQ(bound->text(), opened->addresses[i < 2 ? i : i - 1]);
  }
  EXPECT_EQ(doors[2].kind, wire::DoorKind::Udp);
  ASSERT_TRUE(doors[3].target && doors[4].target);
  EXPECT_EQ(doors[3].target->authority.port, 443);
  EXPECT_EQ(doors[4].target->scheme, policy::Scheme::Http);
  EXPECT_EQ(doors[4].target->authority.port, 8080);
}

TEST(HostDoors, AreRefusedWithASentence) {
  struct Wrong {
    DoorRequest request;
    std::string_view sentence;
  };
  for (const Wrong& wrong : {Wrong{{Proxy, "0.0.0.0:3128"}, "only loopback addresses"},
                             {{Proxy, "[::]:3128"}, "only loopback addresses"},
                             {{Tls, "192.0.2.1:443"}, "only loopback addresses"},
                             {{Http, "[::ffff:127.0.0.1]:80"}, "only loopback addresses"},
                             {{Dns, "localhost:53"}, "not an ADDRESS:PORT"},
                             {{Proxy, "3128"}, "not an ADDRESS:PORT"},
                             {{Proxy, ""}, "not an ADDRESS:PORT"},
                             {{Proxy, "127.0.0.1:0=https://forge.test"}, "only --door has a target"},
                             {{Fixed, "127.0.0.1:0"}, "not ADDRESS:PORT=https://HOST"},
                             {{Fixed, "10.0.0.1:0=https://forge.test"}, "only loopback addresses"},
                             {{Fixed, "127.0.0.1:0=forge.test"}, "a target is https://HOST"},
                             {{Fixed, "127.0.0.1:0=ftp://forge.test"}, "a target is https://HOST"},
                             {{Fixed, "127.0.0.1:0=https://forge.test/a"}, "forge.test/a"},
                             {{Fixed, "127.0.0.1:0=https://127.0.0.1"}, "is an address"}}) {
    const auto opened = open_host_doors({wrong.request}, ::geteuid());
    ASSERT_FALSE(opened) << wrong.request.text;
    EXPECT_THAT(opened.error().detail, HasSubstr(wrong.sentence)) << wrong.request.text;
  }
}

TEST(HostDoors, AreNotOpenedWhereSomebodyListens) {
  const auto first = open_host_doors({{Proxy, "127.0.0.1:0"}}, ::geteuid());
  ASSERT_TRUE(first);
  const auto second = open_host_doors({{Proxy, first->addresses[0]}}, ::geteuid());
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().detail, HasSubstr("bind"));
}

TEST(HostDoors, AreNoMoreThanOnePacketCarries) {
  EXPECT_TRUE(open_host_doors(std::vector<DoorRequest>(wire::kMaxHostDoors, {Proxy, "127.0.0.1:0"}), 0));
  EXPECT_FALSE(open_host_doors(std::vector<DoorRequest>(wire::kMaxHostDoors + 1, {Proxy, "127.0.0.1:0"}), 0));
}

}  // namespace
}  // namespace sallyport::session
