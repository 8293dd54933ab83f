#include "gate/doors.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <future>
#include <thread>
#include <vector>

#include "audit/fake_recorder.h"
#include "gate/testing.h"
#include "os/socket_owner.h"

namespace sallyport::gate {
namespace {

using testing::receive_all;
using testing::send_text;

// Tells a client, who waits on another thread, that the doors are full.
class FullRecorder final : public audit::FakeRecorder {
 public:
  void note(audit::Event event) override {
    if (event.reason == Reason::TooMany) full.set_value(doors->connections());
    FakeRecorder::note(std::move(event));
  }

  const Doors* doors = nullptr;
  std::promise<std::size_t> full;
};

constexpr std::size_t kMaxConnections = policy::Limits{}.connections;

class DoorsTest : public ::testing::Test {
 protected:
  DoorsTest() { recorder_.doors = &doors_; }

  os::Endpoint open_tcp_door() {
    Fd listener = testing::loopback_socket(SOCK_STREAM);
    const os::Endpoint address = testing::bound_address(listener.get());
    std::vector<Fd> fds;
    fds.push_back(std::move(listener));
    const wire::GateDoors message{wire::DoorMode::Direct, {{wire::DoorKind::Tcp, address.port}}};
    EXPECT_TRUE(doors_.open(message, std::move(fds)));
    return address;
  }
  // Of the host, for one user.
  os::Endpoint open_host_door(wire::HostDoorUse use, uid_t owner) {
    Fd listener = testing::loopback_socket(SOCK_STREAM);
    const os::Endpoint address = testing::bound_address(listener.get());
    std::vector<Fd> fds;
    fds.push_back(*os::open_socket_diagnosis());
    fds.push_back(std::move(listener));
    wire::HostDoor door{wire::DoorKind::Tcp, use, std::nullopt};
    if (use == wire::HostDoorUse::Fixed) {
      door.target = wire::FixedTarget{policy::Scheme::Http, {*policy::HostName::parse("forge.test"), 8080}};
    }
    EXPECT_TRUE(doors_.open(wire::GateHostDoors{owner, {std::move(door)}}, std::move(fds)));
    return address;
  }
  // What a client is told who asks for evil.test there.
  std::string ask_for_evil(const os::Endpoint& door, const std::string& target) {
    std::string answer;
    with_client([&] {
      const Fd client = testing::connect_to(door);
      send_text(client.get(), "GET " + target + " HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n");
      answer = receive_all(client.get()).bytes;
    });
    return answer;
  }
  template <class Client>
  void with_client(Client client) {
    std::thread thread([&] {
      client();
      boost::asio::post(worker_.io(), [this] { worker_.stop(); });
    });
    worker_.run();
    thread.join();
  }

  policy::Grant grant_;
  FullRecorder recorder_;
  testing::FakeOpener opener_;
  forward::Live live_;
  git::Context git_{grant_, recorder_, opener_, opener_, live_};
  egress::HttpContext http_{grant_, recorder_, opener_, live_};
  forward::Usage usage_{grant_.limits};
  dns::SyntheticAddresses addresses_{grant_};
  net::Worker worker_;
  dns::Server dns_{worker_, grant_, addresses_, recorder_};
  std::unique_ptr<egress::Interceptor> interceptor_ =
      *egress::Interceptor::make(worker_, *net::make_session_ca("0123456789abcdef"));
  std::unique_ptr<net::Resolver> resolver_ =
      *net::Resolver::make(worker_, {*policy::parse_pinned_address("127.0.0.1:1")});
  egress::Tunnels tunnels_{worker_, *resolver_, grant_, recorder_, usage_, live_};
  GatewaysInForce in_force_ = std::make_shared<Gateways>(git_, http_, &tunnels_, usage_);
  Front front_{{worker_, in_force_, addresses_, dns_, *interceptor_}};
  Doors doors_{worker_, front_, dns_, recorder_, kMaxConnections};
};

TEST_F(DoorsTest, HandEachConnectionToTheFrontWithItsDestination) {
  const os::Endpoint door = open_tcp_door();
  with_client([&] {
    const Fd client = testing::connect_to(door);
    EXPECT_EQ(receive_all(client.get()).error, ECONNRESET);
  });
  ASSERT_EQ(recorder_.events.size(), 1U);
  EXPECT_EQ(recorder_.events[0].reason, Reason::IpLiteral);
  EXPECT_EQ(recorder_.events[0].destination, door.text());
}

TEST_F(DoorsTest, LetConnectionsWaitWhenTooManyAreOpenAndTellItOnce) {
  // While the probe is armed, a connection stays open until its line is there.
  front_.arm(Probe{"probe\n", "door\n"});
  const os::Endpoint door = open_tcp_door();
  with_client([&] {
    std::vector<Fd> idle;
    for (std::size_t i = 0; i < kMaxConnections; ++i) idle.push_back(testing::connect_to(door));
    const Fd last = testing::connect_to(door);
    send_text(last.get(), "probe\n");

    auto full = recorder_.full.get_future();
    ASSERT_EQ(full.wait_for(std::chrono::seconds(30)), std::future_status::ready);
    EXPECT_EQ(full.get(), kMaxConnections);
    idle.front().reset();
    EXPECT_EQ(receive_all(last.get()).bytes, "door\n");
  });
}

TEST_F(DoorsTest, OfTheHostServeTheirOwnerByTheirUse) {
  const os::Endpoint proxy = open_host_door(wire::HostDoorUse::Proxy, ::geteuid());
  EXPECT_TRUE(ask_for_evil(proxy, "http://evil.test/").starts_with("HTTP/1.1 403 "));
  ASSERT_EQ(recorder_.events.size(), 1U);
  EXPECT_EQ(recorder_.events[0].entry, audit::Entry::Proxy);
  EXPECT_EQ(recorder_.events[0].destination, proxy.text());
}

TEST_F(DoorsTest, OfTheHostTakeTheHostFromTheRequest) {
  const os::Endpoint http = open_host_door(wire::HostDoorUse::Http, ::geteuid());
  EXPECT_TRUE(ask_for_evil(http, "/").starts_with("HTTP/1.1 403 "));
  ASSERT_EQ(recorder_.events.size(), 1U);
  EXPECT_EQ(recorder_.events[0].entry, audit::Entry::Http);
  EXPECT_EQ(recorder_.events[0].host, "evil.test");
}

TEST_F(DoorsTest, OfTheHostWithATargetTakeNoOtherHost) {
  const os::Endpoint fixed = open_host_door(wire::HostDoorUse::Fixed, ::geteuid());
  EXPECT_TRUE(ask_for_evil(fixed, "/").starts_with("HTTP/1.1 421 "));
  ASSERT_EQ(recorder_.events.size(), 1U);
  EXPECT_EQ(recorder_.events[0].reason, Reason::HostMismatch);
  EXPECT_EQ(recorder_.events[0].port, 8080);
}

TEST_F(DoorsTest, OfTheHostRefuseAnotherUser) {
  for (const auto use : {wire::HostDoorUse::Proxy, wire::HostDoorUse::Tls, wire::HostDoorUse::Http,
                         wire::HostDoorUse::Dns, wire::HostDoorUse::Fixed}) {
    recorder_.events.clear();
    const os::Endpoint door = open_host_door(use, ::geteuid() + 1);
    worker_.io().restart();
    with_client([&] {
      const Fd client = testing::connect_to(door);
      EXPECT_EQ(receive_all(client.get()).error, ECONNRESET);
    });
    ASSERT_EQ(recorder_.events.size(), 1U);
    EXPECT_EQ(recorder_.events[0].reason, Reason::OtherUser);
    EXPECT_EQ(recorder_.events[0].destination, door.text());
  }
}

TEST_F(DoorsTest, RefuseAMessageThatDoesNotFitItsDescriptors) {
  EXPECT_FALSE(doors_.open(wire::GateDoors{wire::DoorMode::Direct, {{wire::DoorKind::Tcp, 443}}}, {}));
  EXPECT_FALSE(doors_.open(wire::GateHostDoors{}, {}));
}

}  // namespace
}  // namespace sallyport::gate
