#include "sandbox/decoys.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <fstream>

#include "os/endpoint.h"
#include "os/inside_test.h"
#include "os/links.h"
#include "os/netlink.h"
#include "os/netns.h"

namespace sallyport::sandbox {
namespace {

TEST(Decoys, WaitOnLoopbackAndHaveSeenNothingAtFirst) {
  const auto decoys = Decoys::open();
  ASSERT_TRUE(decoys.has_value()) << decoys.error().detail;
  const auto on_loopback = [](const os::Endpoint& endpoint) {
    return endpoint.address_text() == "127.0.0.1";
  };
  EXPECT_TRUE(std::ranges::any_of(decoys->list().tcp, on_loopback));
  EXPECT_TRUE(std::ranges::any_of(decoys->list().udp, on_loopback));
  EXPECT_FALSE(decoys->list().abstract_name.empty());
  EXPECT_EQ(decoys->seen(), std::nullopt);
}

// In a namespace whose kernel has nearly nothing but doors' ports to give.
TEST(Decoys, NeverHaveAPortThatADoorMayHave) {
  auto builder = os::NamespaceBuilder::start({.helper = SALLYPORT_NETNS, .become = os::testing::test_ids()});
  ASSERT_TRUE(builder) << builder.error().detail;
  auto space = builder->namespaces();
  ASSERT_TRUE(space) << space.error().detail;
  os::testing::Forked child(os::testing::inside(*space, []() -> std::string {
    if (auto up = os::open_route_socket(0); !up || !os::raise_loopback(up->get())) return "no loopback";
    std::ofstream("/proc/sys/net/ipv4/ip_local_port_range") << "40442 40456" << std::flush;
    std::string wrong;
    for (int i = 0; i < 20; ++i) {
      const auto decoys = Decoys::open();
      if (!decoys) return decoys.error().detail;
      if (decoys->list().udp.empty()) return "no decoy";
      for (const auto& list : {decoys->list().tcp, decoys->list().udp}) {
        for (const os::Endpoint& endpoint : list) {
          if (may_be_a_door(endpoint.port)) wrong += endpoint.text() + " ";
          if (endpoint.port < 40442 || endpoint.port > 40456) wrong += "not in the range ";
        }
      }
    }
    return wrong;
  }));
  EXPECT_EQ(child.finish(), "");
  for (const int port : {40443, 40453, 53, 80, 443})
    EXPECT_TRUE(may_be_a_door(static_cast<std::uint16_t>(port)));
  for (const int port : {40442, 40454, 52, 8080})
    EXPECT_FALSE(may_be_a_door(static_cast<std::uint16_t>(port)));
}

TEST(Decoys, SeeADatagram) {
  const auto decoys = Decoys::open();
  ASSERT_TRUE(decoys.has_value());
  const os::Endpoint target = decoys->list().udp.front();
  const Fd socket(::socket(target.family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const os::SocketAddress address = os::socket_address(target);
  ASSERT_EQ(::sendto(socket.get(), "x", 1, 0, address.get(), address.length), 1);
  EXPECT_EQ(decoys->seen(), "udp " + target.text());
}

TEST(Decoys, SeeAConnection) {
  const auto decoys = Decoys::open();
  ASSERT_TRUE(decoys.has_value());
  const os::Endpoint target = decoys->list().tcp.back();
  const Fd socket(::socket(target.family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const os::SocketAddress address = os::socket_address(target);
  ASSERT_EQ(::connect(socket.get(), address.get(), address.length), 0);
  EXPECT_EQ(decoys->seen(), "tcp " + target.text());
}

}  // namespace
}  // namespace sallyport::sandbox
