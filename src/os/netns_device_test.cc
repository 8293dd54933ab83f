// A device moved into a sandbox's namespace: the watch sees it, and the rules let nothing through.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "os/inside_test.h"
#include "os/links.h"
#include "os/netlink.h"
#include "os/netns.h"
#include "os/unix_socket.h"

namespace sallyport::os {
namespace {

using testing::at;
using testing::bind_to;
using testing::Forked;
using testing::open_socket;

constexpr std::chrono::milliseconds kPatience{10'000};

// Our own device, by the system's tool, from a namespace of the test: nothing of the host is touched.
std::string shell(const std::string& command) {
  const int status = ::system(command.c_str());
  return status == 0 ? "" : command + ": status " + std::to_string(status) + "; ";
}

constexpr std::uint16_t kSentinelProtocol = 0x88B5;  // IEEE 802: for local experiments

std::string send_sentinel(const char* device) {
  const Fd socket(::socket(AF_PACKET, SOCK_DGRAM, htons(kSentinelProtocol)));
  sockaddr_ll to{};
  to.sll_family = AF_PACKET;
  to.sll_protocol = htons(kSentinelProtocol);
  to.sll_ifindex = static_cast<int>(::if_nametoindex(device));
  to.sll_halen = ETH_ALEN;
  std::memset(to.sll_addr, 0xFF, ETH_ALEN);
  return ::sendto(socket.get(), "end", 3, 0, reinterpret_cast<sockaddr*>(&to), sizeof to) == 3 ? ""
                                                                                               : "sentinel";
}

// Everything that comes in by the device up to the sentinel: how many IP packets there were.
int packets_before_sentinel(int capture) {
  int packets = 0;
  for (;;) {
    if (!wait_readable(capture, kPatience).value_or(false)) return -1;
    char frame[2048];
    sockaddr_ll from{};
    socklen_t length = sizeof from;
    if (::recvfrom(capture, frame, sizeof frame, 0, reinterpret_cast<sockaddr*>(&from), &length) < 0) {
      return -2;
    }
    if (from.sll_pkttype == PACKET_OUTGOING) continue;
    if (from.sll_protocol == htons(kSentinelProtocol)) return packets;
    if (from.sll_protocol == htons(ETH_P_IP) || from.sll_protocol == htons(ETH_P_IPV6)) ++packets;
  }
}

Fd capture_on(const char* device) {
  Fd socket(::socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, htons(ETH_P_ALL)));
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_ALL);
  address.sll_ifindex = static_cast<int>(::if_nametoindex(device));
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  return socket;
}

void send_out_of(const char* device, const Endpoint& where) {
  const Fd socket = open_socket(where, SOCK_DGRAM);
  ::setsockopt(socket.get(), SOL_SOCKET, SO_BINDTODEVICE, device,
               static_cast<socklen_t>(std::strlen(device)));
  const SocketAddress address = socket_address(where);
  ::sendto(socket.get(), "out", 3, MSG_DONTWAIT, address.get(), address.length);
}

TEST(NetnsDevice, ThatIsPutInIsReportedAndPassesNothing) {
  if (::geteuid() != 0) GTEST_SKIP() << "moving a device into a namespace takes root";
  auto builder = NamespaceBuilder::start({.helper = SALLYPORT_NETNS, .become = testing::test_ids()});
  ASSERT_TRUE(builder) << builder.error().detail;
  auto space = builder->namespaces();
  ASSERT_TRUE(space) << space.error().detail;
  auto doors = builder->open_doors();
  ASSERT_TRUE(doors) << doors.error().detail;
  ASSERT_EQ(doors->mode, DoorMode::Redirect) << doors->fallback_reason;
  ASSERT_TRUE(drain_link_events(space->link_watch.get()));
  const int sandbox = space->net.get();
  auto control = socket_pair(SocketKind::Packet);
  ASSERT_TRUE(control);
  const int to_parent = control->second.get();
  Forked child([sandbox, to_parent]() -> std::string {
    if (::unshare(CLONE_NEWNET) != 0) return "unshare";
    const Fd outside(::open("/proc/self/ns/net", O_RDONLY));
    const std::string path = "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(sandbox);
    std::string wrong =
        shell("ip link add outer type veth peer name inner") + shell("ip addr add 10.99.0.1/24 dev outer") +
        shell("ip link set outer up") + shell("ip neigh add 10.99.0.2 lladdr 02:00:00:00:00:02 dev outer") +
        shell("ip link set inner address 02:00:00:00:00:02") + shell("ip link set inner netns " + path);
    const Fd capture = capture_on("outer");
    ::setns(sandbox, CLONE_NEWNET);
    wrong += shell("ip addr add 10.99.0.2/24 dev inner") + shell("ip link set inner up") +
             shell("ip addr add fd99::2/64 dev inner nodad") +
             shell("ip neigh add fd99::1 lladdr 02:00:00:00:00:01 dev inner") +
             shell("ip neigh add 10.99.0.1 lladdr 02:00:00:00:00:01 dev inner");
    const Fd server = open_socket(at("10.99.0.2", 0), SOCK_DGRAM);
    if (bind_to(server.get(), at("0.0.0.0", 7000)) != 0) return "bind";
    const Fd inner_capture = capture_on("inner");
    for (const std::uint16_t port : {std::uint16_t{53}, std::uint16_t{99}}) {
      send_out_of("inner", at("10.99.0.1", port));
      send_out_of("inner", at("fd99::1", port));
    }
    wrong += send_sentinel("inner");
    if (const int got = packets_before_sentinel(capture.get()); got != 0) {
      wrong += "out: " + std::to_string(got);
    }
    ::setns(outside.get(), CLONE_NEWNET);
    send_out_of("outer", at("10.99.0.2", 7000));
    wrong += send_sentinel("outer");
    // This packet is seen to come in, and yet reaches no socket.
    if (packets_before_sentinel(inner_capture.get()) < 1) wrong += "the test's packet did not arrive; ";
    char byte = 0;
    if (::recv(server.get(), &byte, 1, MSG_DONTWAIT) >= 0) wrong += "a packet came in";
    // Both devices live until the parent has looked: it keeps the namespace of the other end.
    const int kept[] = {outside.get()};
    if (!send_packet(to_parent, "outside", kept)) wrong += "send";
    return wrong;
  });
  EXPECT_EQ(child.finish(), "");
  EXPECT_TRUE(wait_readable(space->link_watch.get(), kPatience).value_or(false));
  EXPECT_TRUE(drain_link_events(space->link_watch.get()));
  auto links = list_links(space->link_query.get());
  ASSERT_TRUE(links);
  auto only = only_loopback(*links);
  ASSERT_FALSE(only);
  EXPECT_EQ(only.error().detail, "the sandbox's network namespace holds the device \"inner\"");

  const auto inner = [&] { return *std::ranges::find(*links, std::string("inner"), &Link::name); };
  EXPECT_TRUE(inner().up);
  EXPECT_TRUE(lower_link(space->link_query.get(), inner().index));
  links = list_links(space->link_query.get());
  ASSERT_TRUE(links);
  EXPECT_FALSE(inner().up);
}

}  // namespace
}  // namespace sallyport::os
