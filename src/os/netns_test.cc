#include "os/netns.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/icmp6.h>
#include <netinet/ip_icmp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>

#include "os/firewall.h"
#include "os/inside_test.h"
#include "os/links.h"
#include "os/nflog.h"
#include "os/unix_socket.h"
#include "os/userns.h"

namespace sallyport::os {
namespace {

using testing::at;
using testing::bind_to;
using testing::connect_to;
using testing::Forked;
using testing::inside;
using testing::open_socket;

constexpr std::chrono::milliseconds kPatience{10'000};

// Rather an error than a test that hangs.
void limit_waiting(int socket) {
  const timeval patience{10, 0};
  ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
}

// Dials and waits until the other side closes.
std::string visit(const Endpoint& where, const std::optional<Endpoint>& source = std::nullopt) {
  const Fd socket = open_socket(where, SOCK_STREAM);
  limit_waiting(socket.get());
  if (source && bind_to(socket.get(), *source) != 0) {
    return "bind " + source->text() + ": " + errno_text(errno);
  }
  if (const int error = connect_to(socket.get(), where); error != 0) {
    return "connect " + where.text() + ": " + errno_text(error);
  }
  char byte = 0;
  return ::read(socket.get(), &byte, 1) == 0 ? "" : "read: no clean end";
}

std::string expect_error(const std::string& what, int got, int wanted) {
  return got == wanted ? "" : what + ": " + errno_text(got) + " instead of " + errno_text(wanted) + "; ";
}

const Listener* find(const Doors& doors, ListenerKind kind, sa_family_t family, std::uint16_t port = 0) {
  for (const Listener& listener : doors.listeners) {
    if (listener.kind == kind && listener.family == family && (port == 0 || listener.port == port)) {
      return &listener;
    }
  }
  return nullptr;
}

Fd accept_one(const Listener& listener) {
  if (!wait_readable(listener.fd.get(), kPatience).value_or(false)) return {};
  return Fd(::accept4(listener.fd.get(), nullptr, nullptr, SOCK_CLOEXEC));
}

class Netns : public ::testing::Test {
 protected:
  void SetUp() override {
    auto builder = NamespaceBuilder::start({.helper = SALLYPORT_NETNS, .become = testing::test_ids()});
    ASSERT_TRUE(builder) << builder.error().detail;
    builder_.emplace(std::move(*builder));
    auto space = builder_->namespaces();
    ASSERT_TRUE(space) << space.error().detail;
    space_ = std::move(*space);
  }

  void open_doors(DoorWish wish = DoorWish::Redirect) {
    auto doors = builder_->open_doors(wish);
    ASSERT_TRUE(doors) << doors.error().detail;
    doors_ = std::move(*doors);
    if (wish == DoorWish::Redirect) ASSERT_EQ(doors_.mode, DoorMode::Redirect) << doors_.fallback_reason;
  }

  // What the door says of a connection that the child makes by visit().
  std::optional<Endpoint> destination_of(const Endpoint& where,
                                         const std::optional<Endpoint>& source = std::nullopt) {
    Forked child(inside(space_, [&] { return visit(where, source); }));
    const Listener* door = find(doors_, ListenerKind::Tcp, where.family);
    if (door == nullptr) return std::nullopt;
    std::optional<Endpoint> destination;
    {
      const Fd connection = accept_one(*door);
      EXPECT_TRUE(connection) << where.text();
      auto original = original_destination(connection.get(), doors_.mode);
      EXPECT_TRUE(original) << original.error().detail;
      if (original) destination = *original;
    }
    EXPECT_EQ(child.finish(), "") << where.text();
    return destination;
  }

  std::vector<RefusedPacket> wait_for_reports() {
    EXPECT_TRUE(space_.nflog);
    EXPECT_TRUE(wait_readable(space_.nflog->get(), kPatience).value_or(false));
    return read_nflog(space_.nflog->get()).value_or(std::vector<RefusedPacket>());
  }

  std::optional<NamespaceBuilder> builder_;
  Namespace space_;
  Doors doors_;
};

TEST_F(Netns, ReachesNothingBeforeTheDoorsOpen) {
  Forked child(inside(space_, [] {
    std::string wrong;
    for (const Endpoint& where : {at("1.2.3.4", 80), at("2001:db8::1", 80), at("127.0.0.1", 80),
                                  at("::1", 80), at("198.18.0.1", 53), at("fd00::1", 53)}) {
      for (const int type : {SOCK_STREAM, SOCK_DGRAM}) {
        const Fd socket = open_socket(where, type);
        const int error = connect_to(socket.get(), where);
        // Without any IPv6 address the kernel may miss the source first.
        if (where.family == AF_INET6 && error == EADDRNOTAVAIL) continue;
        wrong += expect_error(where.text(), error, ENETUNREACH);
      }
    }
    return wrong;
  }));
  EXPECT_EQ(child.finish(), "");
  auto links = list_links(space_.link_query.get());
  ASSERT_TRUE(links) << links.error().detail;
  EXPECT_TRUE(only_loopback(*links));
  for (const Link& link : *links) EXPECT_FALSE(link.up) << link.name;
}

TEST_F(Netns, SendsEveryTcpPortToOneDoorThatKnowsTheDestination) {
  open_doors();
  for (const Endpoint& where :
       {at("1.2.3.4", 22), at("2001:db8::1", 22), at("93.184.216.34", 443), at("198.18.0.1", 443),
        at("2001:db8::1", 443), at("1.1.1.1", 53), at("10.0.0.1", 1), at("169.254.169.254", 80),
        at("fd00::2", 65535), at("203.0.113.9", 40443)}) {
    EXPECT_EQ(destination_of(where).value_or(Endpoint{}).text(), where.text());
  }
}

TEST_F(Netns, RedirectsAClientThatIsBoundToLoopback) {
  open_doors();
  EXPECT_EQ(destination_of(at("1.2.3.4", 443), at("127.0.0.1", 0)).value_or(Endpoint{}).text(),
            "1.2.3.4:443");
  EXPECT_EQ(destination_of(at("1.2.3.4", 443), at("198.18.0.1", 0)).value_or(Endpoint{}).text(),
            "1.2.3.4:443");
  EXPECT_EQ(destination_of(at("2001:db8::1", 443), at("::1", 0)).value_or(Endpoint{}).text(),
            "[2001:db8::1]:443");
}

TEST_F(Netns, GivesNoDestinationWhenTheDoorItselfWasAddressed) {
  open_doors();
  const std::uint16_t port = find(doors_, ListenerKind::Tcp, AF_INET)->port;
  EXPECT_EQ(destination_of(at("127.0.0.1", port)), std::nullopt);
  EXPECT_EQ(destination_of(at("::1", port)), std::nullopt);
}

TEST_F(Netns, AnswersDnsFromTheAddressThatWasAsked) {
  open_doors();
  for (const Endpoint& server : {at("198.18.0.1", 53), at("8.8.8.8", 53), at("2001:db8::53", 53)}) {
    Forked child(inside(space_, [&]() -> std::string {
      const Fd socket = open_socket(server, SOCK_DGRAM);
      if (connect_to(socket.get(), server) != 0) return "connect: " + errno_text(errno);
      if (::send(socket.get(), "ask", 3, 0) != 3) return "send: " + errno_text(errno);
      if (!wait_readable(socket.get(), kPatience).value_or(false)) return "no answer";
      char answer[16];
      const ssize_t got = ::recv(socket.get(), answer, sizeof answer, 0);
      if (got < 0) return "recv: " + errno_text(errno);
      return std::string(answer, static_cast<std::size_t>(got)) == "answer" ? "" : "another answer";
    }));
    const Listener* door = find(doors_, ListenerKind::Udp, server.family);
    ASSERT_NE(door, nullptr);
    ASSERT_TRUE(wait_readable(door->fd.get(), kPatience).value_or(false));
    char question[16];
    sockaddr_storage peer{};
    socklen_t length = sizeof peer;
    ASSERT_EQ(
        ::recvfrom(door->fd.get(), question, sizeof question, 0, reinterpret_cast<sockaddr*>(&peer), &length),
        3);
    ASSERT_EQ(::sendto(door->fd.get(), "answer", 6, 0, reinterpret_cast<const sockaddr*>(&peer), length), 6)
        << errno_text(errno);
    EXPECT_EQ(child.finish(), "") << server.text();
  }
}

TEST_F(Netns, RefusesOtherDatagramsAtOnceAndReportsThem) {
  open_doors();
  for (const Endpoint& where : {at("1.2.3.4", 99), at("2001:db8::1", 443), at("198.18.0.1", 5353)}) {
    Forked child(inside(space_, [&]() -> std::string {
      const Fd socket = open_socket(where, SOCK_DGRAM);
      if (const int error = connect_to(socket.get(), where); error != 0) {
        return "connect: " + errno_text(error);
      }
      // The refusal is known to the sender as the call returns, or by the next.
      for (int attempt = 0; attempt < 2; ++attempt) {
        if (::send(socket.get(), "x", 1, 0) == 1) continue;
        return errno == EPERM || errno == ECONNREFUSED || errno == EACCES ? "" : errno_text(errno);
      }
      return "nothing was refused";
    }));
    EXPECT_EQ(child.finish(), "") << where.text();
    const auto reports = wait_for_reports();
    ASSERT_FALSE(reports.empty());
    EXPECT_EQ(reports[0].protocol, IPPROTO_UDP);
    EXPECT_EQ(reports[0].destination.text(), where.text());
  }
}

Fd ping(const Endpoint& where) {
  const bool v4 = where.family == AF_INET;
  Fd socket = open_socket(where, SOCK_DGRAM, v4 ? int{IPPROTO_ICMP} : int{IPPROTO_ICMPV6});
  const SocketAddress address = socket_address(where);
  char echo[8] = {};
  echo[0] = static_cast<char>(v4 ? int{ICMP_ECHO} : int{ICMP6_ECHO_REQUEST});
  ::sendto(socket.get(), echo, sizeof echo, 0, address.get(), address.length);
  return socket;
}

TEST_F(Netns, AnswersEchoRequestsOfLoopbackOnly) {
  open_doors();
  Forked child(inside(space_, []() -> std::string {
    const Fd range(::open("/proc/sys/net/ipv4/ping_group_range", O_WRONLY));
    const std::string group = std::to_string(::getegid());
    const std::string groups = group + " " + group;
    if (::write(range.get(), groups.data(), groups.size()) < 0) {
      return "ping_group_range: " + errno_text(errno);
    }
    std::vector<Fd> refused;
    for (const char* address : {"1.2.3.4", "198.18.0.1", "2001:db8::1"}) {
      refused.push_back(ping(at(address, 0)));
    }
    // An echo on lo is answered before the call returns; these two show that it would have been.
    for (const char* address : {"127.0.0.1", "::1"}) {
      const Fd own = ping(at(address, 0));
      if (!wait_readable(own.get(), kPatience).value_or(false)) return std::string("no echo from ") + address;
    }
    char reply[64];
    for (const Fd& socket : refused) {
      if (::recv(socket.get(), reply, sizeof reply, MSG_DONTWAIT) >= 0) return "an echo came back";
    }
    return "";
  }));
  EXPECT_EQ(child.finish(), "");
  const auto reports = wait_for_reports();
  ASSERT_EQ(reports.size(), 3U);
  EXPECT_EQ(reports[0].protocol, IPPROTO_ICMP);
  EXPECT_EQ(reports[0].destination.text(), "1.2.3.4:0");
  EXPECT_EQ(reports[2].protocol, IPPROTO_ICMPV6);
  EXPECT_EQ(reports[2].destination.text(), "[2001:db8::1]:0");
}

std::string serve_and_visit(const Endpoint& server, const Endpoint& client_dials) {
  const Fd listener = open_socket(server, SOCK_STREAM);
  const int on = 1;
  ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (const int error = bind_to(listener.get(), server); error != 0) {
    return "bind " + server.text() + ": " + errno_text(error) + "; ";
  }
  if (::listen(listener.get(), 4) != 0) return "listen: " + errno_text(errno);
  const Fd client = open_socket(client_dials, SOCK_STREAM);
  if (const int error = connect_to(client.get(), client_dials); error != 0) {
    return "connect " + client_dials.text() + ": " + errno_text(error) + "; ";
  }
  if (!wait_readable(listener.get(), kPatience).value_or(false)) {
    return "not mine: " + client_dials.text() + "; ";
  }
  const Fd connection(::accept(listener.get(), nullptr, nullptr));
  return ::write(connection.get(), "x", 1) == 1 ? "" : "write";
}

TEST_F(Netns, LeavesTheSandboxItsOwnServersOnEveryPort) {
  open_doors();
  Forked child(inside(space_, [] {
    return serve_and_visit(at("0.0.0.0", 80), at("127.0.0.1", 80)) +
           serve_and_visit(at("127.0.0.1", 443), at("127.0.0.1", 443)) +
           serve_and_visit(at("127.1.2.3", 53), at("127.1.2.3", 53)) +
           serve_and_visit(at("::", 8080), at("::1", 8080)) + serve_and_visit(at("::1", 22), at("::1", 22));
  }));
  EXPECT_EQ(child.finish(), "");
}

TEST_F(Netns, OpensDoorsOnKnownPortsWithoutNftables) {
  open_doors(DoorWish::Direct);
  EXPECT_EQ(doors_.mode, DoorMode::Direct);
  EXPECT_NE(doors_.fallback_reason, "");
  for (const Endpoint& where : {at("1.2.3.4", 443), at("2001:db8::1", 80), at("8.8.8.8", 53)}) {
    Forked child(inside(space_, [&] { return visit(where); }));
    {
      const Fd connection = accept_one(*find(doors_, ListenerKind::Tcp, where.family, where.port));
      auto original = original_destination(connection.get(), doors_.mode);
      ASSERT_TRUE(original && *original);
      EXPECT_EQ((*original)->text(), where.text());
    }
    EXPECT_EQ(child.finish(), "");
  }
  Forked child(inside(space_, [] {
    const Endpoint where = at("1.2.3.4", 22);
    const Fd socket = open_socket(where, SOCK_STREAM);
    return expect_error(where.text(), connect_to(socket.get(), where), ECONNREFUSED);
  }));
  EXPECT_EQ(child.finish(), "");
}

// Each of these would leave one record in the kernel.
TEST_F(Netns, BoundsTheKernelsRecordsUnderAFlood) {
  open_doors();
  Forked child(inside(space_, []() -> std::string {
    const auto start = std::chrono::steady_clock::now();
    constexpr int kFlood = 40'000;
    const SocketAddress dns = socket_address(at("8.8.8.8", 53));
    int sent = 0;
    for (int i = 0; i < kFlood; ++i) {
      const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
      const int port = 1024 + i;
      if (bind_to(socket.get(), at("198.18.0.1", static_cast<std::uint16_t>(port))) != 0) continue;
      if (::sendto(socket.get(), "x", 1, MSG_DONTWAIT, dns.get(), dns.length) == 1) ++sent;
    }
    const auto elapsed = std::chrono::steady_clock::now() - start;
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(elapsed).count() + 1;
    const auto bound = kMaxNewConnectionsBurst + kMaxNewConnectionsPerSecond * seconds;
    const auto count = read_sysctl("/proc/sys/net/netfilter/nf_conntrack_count");
    if (!count) return "no count";
    const int records = std::stoi(*count);
    if (records > bound || sent > bound) {
      return std::to_string(records) + " records, " + std::to_string(sent) + " sent, of at most " +
             std::to_string(bound);
    }
    return records > 100 ? "" : "the flood did not arrive: " + *count;
  }));
  EXPECT_EQ(child.finish(), "");
}

// What was not counted makes no record, and what was counted is not remembered for longer than it is said.
TEST_F(Netns, RemembersNothingThatWasNotCounted) {
  open_doors();
  Forked child(inside(space_, []() -> std::string {
    constexpr int kNoSuchProtocol = 253;  // RFC 3692: for experiments
    constexpr int kSctp = IPPROTO_SCTP;
    std::string wrong;
    int sent = 0;
    for (const Endpoint& where : {at("1.2.3.4", 0), at("2001:db8::1", 0), at("127.0.0.1", 0)}) {
      for (const int protocol : {kNoSuchProtocol, kSctp, int{IPPROTO_UDPLITE}}) {
        const Fd socket = open_socket(where, SOCK_RAW, protocol);
        const SocketAddress address = socket_address(where);
        char packet[32] = {1, 2, 3, 4, 0, 32};
        if (::sendto(socket.get(), packet, sizeof packet, 0, address.get(), address.length) > 0) ++sent;
      }
    }
    // The middle of a connection that nobody has seen begin: an ACK from port 4660 to port 443.
    const Endpoint far = at("1.2.3.4", 0);
    const Fd raw = open_socket(far, SOCK_RAW, IPPROTO_TCP);
    const SocketAddress address = socket_address(far);
    const unsigned char ack[20] = {0x12, 0x34, 1, 0xbb, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 0xff, 0xff};
    if (::sendto(raw.get(), ack, sizeof ack, 0, address.get(), address.length) > 0) ++sent;
    const auto count = read_sysctl("/proc/sys/net/netfilter/nf_conntrack_count");
    if (count != "0\n") wrong += "records: " + count.value_or("?");
    return sent > 0 ? wrong : "nothing could be sent";
  }));
  EXPECT_EQ(child.finish(), "");
  for (const std::string name :
       {"icmp_timeout", "icmpv6_timeout", "tcp_timeout_close", "udp_timeout_stream"}) {
    const std::string path = "/proc/sys/net/netfilter/nf_conntrack_" + name;
    Forked reader(inside(space_, [&path]() -> std::string {
      const auto value = read_sysctl(path);
      return value == std::to_string(kRecordSeconds) + "\n" ? "" : path + ": " + value.value_or("?");
    }));
    EXPECT_EQ(reader.finish(), "");
  }
}

TEST_F(Netns, KeepsNoRecordOfTheSandboxsTrafficWithItself) {
  open_doors();
  Forked child(inside(space_, []() -> std::string {
    std::string wrong = serve_and_visit(at("127.0.0.1", 8000), at("127.0.0.1", 8000)) +
                        serve_and_visit(at("::1", 8000), at("::1", 8000));
    const auto count = read_sysctl("/proc/sys/net/netfilter/nf_conntrack_count");
    return count == "0\n" ? wrong : wrong + "records: " + count.value_or("?");
  }));
  EXPECT_EQ(child.finish(), "");
}

TEST(NetnsHelper, RefusesToMapRoot) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can try";
  auto builder = NamespaceBuilder::start({.helper = SALLYPORT_NETNS, .become = std::nullopt});
  ASSERT_TRUE(builder) << builder.error().detail;
  auto space = builder->namespaces();
  ASSERT_FALSE(space);
  EXPECT_NE(space.error().detail.find("a sandbox never gets uid 0"), std::string::npos)
      << space.error().detail;
}

TEST(NetnsHelper, WorksWithoutRoot) {
  // A copy: the build may lie where only root can look.
  const auto helper = std::filesystem::temp_directory_path() / fmt::format("sallyport-netns-{}", ::getpid());
  std::filesystem::copy_file(SALLYPORT_NETNS, helper);
  Forked child([&helper]() -> std::string {
    if (std::string wrong = testing::become_user(testing::kTestIds); !wrong.empty()) return wrong;
    auto builder = NamespaceBuilder::start({.helper = helper.string(), .become = std::nullopt});
    if (!builder) return builder.error().detail;
    auto space = builder->namespaces();
    if (!space) return space.error().detail;
    auto doors = builder->open_doors();
    if (!doors) return doors.error().detail;
    return doors->mode == DoorMode::Redirect && doors->listeners.size() == 4 ? "" : doors->fallback_reason;
  });
  EXPECT_EQ(child.finish(), "");
  std::filesystem::remove(helper);
}

TEST(NetnsHelper, ThatIsMissingIsAnErrorWithItsName) {
  auto builder = NamespaceBuilder::start({.helper = "/nonexistent/sallyport-netns", .become = std::nullopt});
  ASSERT_FALSE(builder);
  EXPECT_EQ(builder.error().detail, "open /nonexistent/sallyport-netns: No such file or directory");
}

}  // namespace
}  // namespace sallyport::os
