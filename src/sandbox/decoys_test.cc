#include "sandbox/decoys.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>

#include "os/endpoint.h"

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
