#include "dns/server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "audit/fake_recorder.h"
#include "dns/message.h"
#include "dns/testing.h"

namespace sallyport::dns {
namespace {

using testing::make_query;
using testing::read_answer;

sockaddr_in address_of(const char* text, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  ::inet_pton(AF_INET, text, &address.sin_addr);
  return address;
}

// The server on a wildcard socket with IP_PKTINFO, as the doors are without nftables.
class UdpServer : public ::testing::Test {
 protected:
  void SetUp() override {
    Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const int on = 1;
    ASSERT_EQ(::setsockopt(socket.get(), IPPROTO_IP, IP_PKTINFO, &on, sizeof on), 0);
    auto address = address_of("0.0.0.0", 0);
    socklen_t length = sizeof address;
    ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
    ASSERT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
    port_ = ntohs(address.sin_port);
    worker_.spawn("dns", server_.serve_udp(std::move(socket)));
  }

  void with_client(const std::function<void()>& client) {
    std::thread thread([&] {
      client();
      boost::asio::post(worker_.io(), [this] { worker_.stop(); });
    });
    worker_.run();
    thread.join();
  }

  // A socket that takes answers from that very address only.
  Fd client_of(const char* server) {
    Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!socket) return socket;
    const timeval limit{.tv_sec = 30, .tv_usec = 0};
    ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    const auto address = address_of(server, port_);
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return socket;
  }
  static void send(const Fd& socket, const std::string& bytes) {
    EXPECT_EQ(::send(socket.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  }
  static std::string receive(const Fd& socket) {
    char buffer[4096];
    const ssize_t got = ::recv(socket.get(), buffer, sizeof buffer, 0);
    return got < 0 ? "" : std::string(buffer, static_cast<std::size_t>(got));
  }

  // The server's end of a connection, and the client's.
  static std::pair<Fd, Fd> stream_pair() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    return {Fd(ends[0]), Fd(ends[1])};
  }

  policy::Grant grant_{.git = {}, .hosts = {{*policy::HostName::parse("api.ok.test"), {}}}};
  SyntheticAddresses addresses_{grant_};
  audit::FakeRecorder recorder_;
  net::Worker worker_;
  Server server_{worker_, grant_, addresses_, recorder_};
  std::uint16_t port_ = 0;
};

TEST_F(UdpServer, AnswersFromTheAddressThatWasAsked) {
  with_client([this] {
    for (const char* address : {"127.0.0.1", "127.0.0.53", "127.8.8.8"}) {
      const Fd client = client_of(address);
      send(client, make_query("evil.test", kTypeA));
      EXPECT_EQ(read_answer(receive(client)).id, 0x1234) << address;
    }
  });
  ASSERT_EQ(recorder_.events.size(), 3U);
  EXPECT_EQ(recorder_.events[0].host, "evil.test");
}

TEST_F(UdpServer, DropsWhatItMustAndGoesOn) {
  with_client([this] {
    const Fd client = client_of("127.0.0.1");
    send(client, make_query("one.test", kTypeA, {.flags = 0x8100}));  // an answer
    send(client, "short");
    send(client, "");
    send(client, make_query("two.test", 28));
    const std::string answer = receive(client);
    EXPECT_NE(answer.find("two"), std::string::npos);
  });
}

TEST_F(UdpServer, AnswersAnOversizedQueryWithAnError) {
  with_client([this] {
    const Fd client = client_of("127.0.0.1");
    send(client, make_query("api.ok.test", kTypeA) + std::string(kMaxQueryBytes, 'x'));
    const std::string answer = receive(client);
    EXPECT_EQ(answer.size(), kHeaderBytes);
    EXPECT_EQ(read_answer(answer).rcode(), 1);
  });
}

TEST_F(UdpServer, DropsWhatComesFasterThanTheLimit) {
  grant_.limits.dns = Rate{.amount = 1, .per = std::chrono::hours(24), .burst = 2};
  Server slow(worker_, grant_, addresses_, recorder_);
  auto [socket, asking] = stream_pair();
  worker_.spawn("dns", slow.serve_tcp(std::move(socket)));
  with_client([&client = asking] {
    const std::string query = make_query("evil.test", kTypeA);
    const std::string framed{'\0', static_cast<char>(query.size())};
    for (int i = 0; i < 3; ++i) send(client, framed + query);
    while (!receive(client).empty()) {
    }
  });
  EXPECT_EQ(recorder_.events.size(), 2U) << "each of those that were answered";
}

class TcpConnections : public UdpServer {
 protected:
  Fd connect() {
    auto [server_end, client_end] = stream_pair();
    worker_.spawn("dns", server_.serve_tcp(std::move(server_end)));
    return std::move(client_end);
  }
};

TEST_F(TcpConnections, AreNoMoreAtOnceThanTheLimit) {
  std::vector<Fd> open;
  for (std::size_t i = 0; i < kMaxTcpConnections; ++i) open.push_back(connect());
  const Fd one_more = connect();
  with_client([&] { EXPECT_EQ(receive(one_more), ""); });
  ASSERT_EQ(recorder_.events.size(), 1U);
  EXPECT_EQ(recorder_.events[0].entry, audit::Entry::Dns);
  EXPECT_EQ(recorder_.events[0].reason, Reason::TooMany);
  open.pop_back();
  with_client([&] {
    // Its end is seen before the next one begins.
    ::shutdown(open.front().get(), SHUT_WR);
    EXPECT_EQ(receive(open.front()), "");
  });
  const Fd next = connect();
  with_client([&] {
    const std::string query = make_query("api.ok.test", kTypeA);
    send(next, std::string{'\0', static_cast<char>(query.size())} + query);
    EXPECT_NE(receive(next), "");
  });
  EXPECT_NE(recorder_.events.back().reason, Reason::TooMany);
}

}  // namespace
}  // namespace sallyport::dns
