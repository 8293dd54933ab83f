#include "gate/gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "dns/testing.h"
#include "egress/test_hello.h"
#include "gate/testing.h"
#include "net/certificate.h"
#include "net/test_support.h"
#include "os/socket_owner.h"
#include "os/unix_socket.h"
#include "wire/grant_codec.h"
#include "wire/sealed.h"

namespace sallyport::gate {
namespace {

constexpr std::chrono::seconds kLimit{30};

// The gate on this thread, and the warden on another with the other end of the control socket.
class GateTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto [gate_end, warden_end] = *os::socket_pair(os::SocketKind::Packet);
    warden_ = std::move(warden_end);
    const auto ca = *net::make_session_ca("0123456789abcdef");
    start_ = {"0123456789abcdef", *net::certificate_pem(*ca.certificate), *net::private_key_pem(*ca.key)};
    auto pattern = *policy::RepoPattern::parse("api.ok.test/acme/widget", policy::HostKind::Generic);
    grant_.hosts[pattern.host()].ca_pem = start_.ca_certificate_pem;
    grant_.git.push_back({std::move(pattern), policy::Access::Fetch, "", {}});
    auto environment = upstream::Environment::load(worker_, false);
    ASSERT_TRUE(environment) << environment.error().detail;
    environment_ = *std::move(environment);
    auto gate = Gate::make(worker_, environment_, start_, grant_,
                           net::PacketChannel::make(worker_, std::move(gate_end)));
    ASSERT_TRUE(gate) << gate.error().detail;
    gate_ = *std::move(gate);
  }

  Status serve(const std::function<void()>& warden) {
    std::optional<Status> outcome;
    worker_.spawn("gate", serve_gate(outcome));
    std::thread thread([&] {
      warden();
      warden_.reset();
    });
    worker_.run();
    thread.join();
    return *outcome;
  }

  void send(const wire::ToGate& message, const std::vector<int>& fds = {}) {
    EXPECT_TRUE(os::send_packet(warden_.get(), wire::encode(message), fds));
  }
  wire::FromGate receive() {
    const auto packet = os::recv_packet_within(warden_.get(), kLimit);
    if (!packet) return {};
    return wire::decode_from_gate(packet->bytes).value_or(wire::Ready{});
  }
  void send_grant(const policy::Grant& grant) {
    send(wire::GateGrant{}, {wire::to_memfd(wire::encode_grant(grant))->get()});
  }
  void expect_grant_taken() { EXPECT_TRUE(std::holds_alternative<wire::GrantTaken>(receive())); }
  // The next audit event, which is written.
  audit::Event receive_event() {
    const auto message = receive();
    const auto* append = std::get_if<wire::AuditAppend>(&message);
    if (append == nullptr) return {};
    send(wire::AuditWritten{append->number, true});
    return append->event;
  }
  // Nothing but a port of a host.
  policy::Grant with_tcp(std::string_view name, std::uint16_t port) const {
    policy::Grant grant;
    const auto host = *policy::HostName::parse(name);
    grant.hosts[host].ca_pem = start_.ca_certificate_pem;
    grant.tcp.push_back({host, port, {}});
    return grant;
  }
  // The last four bytes of the answer to a query: its address.
  using Ask = std::function<std::string(std::string_view query)>;
  // Opens a door for DNS, and has `client` ask at it.
  void serve_dns(const std::function<void(const Ask& ask)>& client) {
    const Fd socket = testing::loopback_socket(SOCK_DGRAM);
    const os::Endpoint door = testing::bound_address(socket.get());
    EXPECT_TRUE(serve([&] {
      expect_ready();
      send(wire::GateDoors{wire::DoorMode::Direct, {{wire::DoorKind::Udp, door.port}}}, {socket.get()});
      const Fd asks = testing::connect_to(door, SOCK_DGRAM);
      client([&](std::string_view query) {
        testing::send_text(asks.get(), query);
        char answer[512];
        const ssize_t got = ::recv(asks.get(), answer, sizeof answer, 0);
        return got < 4 ? std::string() : std::string(answer + got - 4, 4);
      });
    }));
  }
  void expect_ready() { EXPECT_TRUE(std::holds_alternative<wire::Ready>(receive())); }

  net::Worker worker_;
  upstream::Environment environment_;
  Fd warden_;
  wire::GateStart start_;
  policy::Grant grant_;
  std::unique_ptr<Gate> gate_;

 private:
  net::Task<> serve_gate(std::optional<Status>& outcome) {
    outcome = co_await gate_->serve();
    worker_.stop();
  }
};

TEST_F(GateTest, ServesUntilTheWardenGoes) {
  EXPECT_TRUE(serve([this] { expect_ready(); }));
}

TEST_F(GateTest, AnswersTheProbeAtItsDoorsAndThenRefusesWithAnAuditedLine) {
  const Fd listener = testing::loopback_socket(SOCK_STREAM);
  const os::Endpoint door = testing::bound_address(listener.get());
  const Status status = serve([&] {
    expect_ready();
    send(wire::GateProbe{true, "probe 0123\n", "door 4567\n"});
    send(wire::GateDoors{wire::DoorMode::Direct, {{wire::DoorKind::Tcp, door.port}}}, {listener.get()});
    const Fd probe = testing::connect_to(door);
    testing::send_text(probe.get(), "probe 0123\n");
    EXPECT_EQ(testing::receive_all(probe.get()).bytes, "door 4567\n");
    send(wire::GateProbe{false, "", ""});

    const Fd client = testing::connect_to(door);
    const auto message = receive();
    const auto* audited = std::get_if<wire::AuditAppend>(&message);
    ASSERT_NE(audited, nullptr);
    EXPECT_EQ(audited->event.reason, Reason::IpLiteral);
    EXPECT_EQ(audited->event.destination, door.text());
    send(wire::AuditWritten{audited->number, true});
    EXPECT_EQ(testing::receive_all(client.get()).error, ECONNRESET);
  });
  EXPECT_TRUE(status) << status.error().detail;
}

TEST_F(GateTest, AnswersDnsAtItsUdpDoor) {
  using namespace std::string_literals;
  serve_dns([](const Ask& ask) {
    EXPECT_EQ(ask("\x12\x34\1\0\0\1\0\0\0\0\0\0\3api\2ok\4test\0\0\1\0\1"s), "\xc6\x12\0\2"s);
  });
}

// ---- another grant ----

TEST_F(GateTest, AnswersByTheLastGrantAndNamesKeepTheirAddresses) {
  using namespace std::string_literals;
  serve_dns([&](const Ask& ask_bytes) {
    const auto ask = [&](std::string_view name) { return ask_bytes(dns::testing::make_query(name, 1)); };
    EXPECT_EQ(ask("api.ok.test"), "\xc6\x12\0\2"s);
    policy::Grant next = with_tcp("new.ok.test", 7);
    next.git = grant_.git;
    next.hosts.insert(grant_.hosts.begin(), grant_.hosts.end());
    send_grant(next);
    expect_grant_taken();
    EXPECT_EQ(ask("api.ok.test"), "\xc6\x12\0\2"s);
    EXPECT_EQ(ask("new.ok.test"), "\xc6\x12\0\3"s);
    send_grant(with_tcp("new.ok.test", 7));
    expect_grant_taken();
    EXPECT_NE(ask("api.ok.test"), "\xc6\x12\0\2"s);
    EXPECT_EQ(ask("new.ok.test"), "\xc6\x12\0\3"s);
  });
}

TEST_F(GateTest, ATunnelEndsBehindTheWordThatItsRuleIsGone) {
  const Fd listener = testing::loopback_socket(SOCK_STREAM);
  const os::Endpoint door = testing::bound_address(listener.get());
  const Fd upstream_listener = testing::loopback_socket(SOCK_STREAM);
  const os::Endpoint upstream = testing::bound_address(upstream_listener.get());
  const Fd diagnosis = *os::open_socket_diagnosis();
  policy::Grant first = with_tcp("db.ok.test", 7);
  first.hosts.begin()->second.address = policy::parse_pinned_address(upstream.text());
  EXPECT_TRUE(serve([&] {
    expect_ready();
    send_grant(first);
    expect_grant_taken();
    send(wire::GateHostDoors{::getuid(), {{wire::DoorKind::Tcp, wire::HostDoorUse::Proxy, std::nullopt}}},
         {diagnosis.get(), listener.get()});
    const Fd client = testing::connect_to(door);
    testing::send_text(client.get(), "CONNECT db.ok.test:7 HTTP/1.1\r\n\r\n");
    const audit::Event begin = receive_event();
    EXPECT_EQ(begin.kind, audit::Kind::Begin);
    EXPECT_EQ(begin.host, "db.ok.test");
    // It may be said before the tunnel is made, or behind: it makes no difference.
    send_grant(with_tcp("other.ok.test", 7));
    expect_grant_taken();
    const audit::Event end = receive_event();
    EXPECT_EQ(end.kind, audit::Kind::End);
    EXPECT_EQ(code(end.reason), code(Reason::Revoked));
    EXPECT_EQ(end.request, begin.request);
    const Fd late = testing::connect_to(door);
    testing::send_text(late.get(), "CONNECT db.ok.test:7 HTTP/1.1\r\n\r\n");
    EXPECT_EQ(code(receive_event().reason), code(Reason::HostNotAllowed));
    EXPECT_THAT(testing::receive_all(client.get()).bytes, ::testing::StartsWith("HTTP/1.1 200 "));
  }));
}

TEST_F(GateTest, TakesNoGrantThatNeedsAnotherGate) {
  using Change = void (*)(policy::Grant&);
  for (const Change change :
       {Change([](policy::Grant& grant) { grant.limits.connections = 7; }),
        Change([](policy::Grant& grant) { grant.timeouts.idle = std::chrono::seconds(7); })}) {
    SetUp();
    policy::Grant next = grant_;
    change(next);
    EXPECT_FALSE(serve([&] {
      expect_ready();
      send_grant(next);
    }));
  }
}

TEST_F(GateTest, TakesOtherNameServers) {
  policy::Grant next = grant_;
  next.resolvers.push_back(*policy::parse_pinned_address("192.0.2.1"));
  EXPECT_TRUE(serve([&] {
    expect_ready();
    send_grant(next);
    expect_grant_taken();
  }));
}

TEST_F(GateTest, EndsAtAnythingThatTheWardenMayNotSay) {
  const Fd some = testing::loopback_socket(SOCK_DGRAM);
  struct Case {
    std::string_view what;
    std::string bytes;
    std::vector<int> fds;
  };
  const std::vector<Case> cases{
      {"rubbish", "rubbish", {}},
      {"a second start", wire::encode(wire::ToGate(start_)), {some.get()}},
      {"a vault without its socket", wire::encode(wire::ToGate(wire::GateVault{})), {}},
      {"a packet log without its socket", wire::encode(wire::ToGate(wire::GatePacketLog{})), {}},
      {"a descriptor too many", wire::encode(wire::ToGate(wire::AuditWritten{1, true})), {some.get()}},
      {"a grant without its memory", wire::encode(wire::ToGate(wire::GateGrant{})), {}},
      {"a grant that is none", wire::encode(wire::ToGate(wire::GateGrant{})), {some.get()}},
      {"an empty probe", wire::encode(wire::ToGate(wire::GateProbe{true, "", ""})), {}},
  };
  for (const auto& test : cases) {
    SCOPED_TRACE(test.what);
    SetUp();
    const Status status = serve([&] {
      expect_ready();
      EXPECT_TRUE(os::send_packet(warden_.get(), test.bytes, test.fds));
    });
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().reason, Reason::Internal);
  }
}

TEST_F(GateTest, RefusesAKeyThatIsNone) {
  auto [ours, theirs] = *os::socket_pair(os::SocketKind::Packet);
  wire::GateStart start = start_;
  start.ca_key_pem = "no key";
  auto channel = net::PacketChannel::make(worker_, std::move(ours));
  EXPECT_FALSE(Gate::make(worker_, environment_, start, grant_, std::move(channel)));
}

// What the warden sends to one that begins; "" and it did.
class GateBegin : public GateTest {
 protected:
  std::string begin_with(std::string_view message, const std::vector<int>& fds = {}) {
    auto [gate_end, warden_end] = *os::socket_pair(os::SocketKind::Packet);
    if (message.empty()) {
      warden_end.reset();
    } else {
      EXPECT_TRUE(os::send_packet(warden_end.get(), message, fds));
    }
    auto channel = net::PacketChannel::make(worker_, std::move(gate_end));
    const auto gate = net::test::run(worker_, Gate::begin(worker_, environment_, std::move(channel)));
    return gate ? "" : gate.error().detail;
  }
};

TEST_F(GateBegin, TakesTheStartAndItsGrantAndNothingElse) {
  const Fd memory = *wire::to_memfd(wire::encode_grant(grant_));
  const std::string start = wire::encode(wire::ToGate(start_));
  EXPECT_EQ(begin_with(start, {memory.get()}), "");
  EXPECT_NE(begin_with(start), "");
  EXPECT_NE(begin_with(start, {warden_.get()}), "");
  EXPECT_NE(begin_with(wire::encode(wire::ToGate(wire::AuditWritten{1, true}))), "");
  EXPECT_NE(begin_with(""), "");
}

// A part of a worker, as each session of a process has it.
TEST_F(GateTest, LeavesNothingBehindWhenItsWorkerEnds) {
  const Fd listener = testing::loopback_socket(SOCK_STREAM);
  const Fd datagrams = testing::loopback_socket(SOCK_DGRAM);
  const os::Endpoint door = testing::bound_address(listener.get());
  auto [gate_end, warden_end] = *os::socket_pair(os::SocketKind::Packet);
  warden_ = std::move(warden_end);
  net::Worker part(net::Worker::PartOf{worker_});
  auto made =
      Gate::make(part, environment_, start_, grant_, net::PacketChannel::make(part, std::move(gate_end)));
  ASSERT_TRUE(made) << made.error().detail;
  Fd client;
  const auto serve_and_end = [&]() -> net::Task<> {
    EXPECT_TRUE(co_await (*made)->serve());
    EXPECT_GE(part.children(), 3U);  // two doors, and a connection whose client says nothing
    co_await part.end();
  };
  std::thread warden([&] {
    expect_ready();
    const Fd diagnosis = *os::open_socket_diagnosis();
    send(wire::GateHostDoors{::getuid(),
                             {{wire::DoorKind::Tcp, wire::HostDoorUse::Tls, {}},
                              {wire::DoorKind::Udp, wire::HostDoorUse::Dns, {}}}},
         {diagnosis.get(), listener.get(), datagrams.get()});
    client = testing::connect_to(door, SOCK_STREAM);
    const Fd later = testing::connect_to(door, SOCK_STREAM);  // with its word the first one was accepted, too
    testing::send_text(later.get(), egress::test::record(egress::test::message(egress::test::hello_body(
                                        egress::test::sni("evil.test") + egress::test::versions({0x0304})))));
    EXPECT_EQ(code(receive_event().reason), code(Reason::HostNotAllowed));
    warden_.reset();
  });
  net::test::run(worker_, serve_and_end());
  warden.join();
  EXPECT_EQ(part.children(), 0U);
  made->reset();
  std::string rest(65'536, '\0');
  while (::recv(client.get(), rest.data(), rest.size(), 0) > 0) continue;
  EXPECT_NE(errno, EAGAIN);
}

}  // namespace
}  // namespace sallyport::gate
