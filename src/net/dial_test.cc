#include "net/dial.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include "net/name_server_fixture.h"
#include "net/test_support.h"
#include "os/endpoint.h"
#include "os/links.h"
#include "os/netlink.h"
#include "os/userns.h"

namespace sallyport::net {
namespace {

policy::IpAddress ip(std::string_view text) {
  return policy::IpAddress::parse(text).value();
}

class FixedResolver final : public Resolver {
 public:
  void use(const std::vector<policy::PinnedAddress>& /*servers*/) override {}
  std::vector<policy::IpAddress> addresses;
  int questions = 0;

  Task<Result<std::vector<policy::IpAddress>>> resolve(policy::HostName) override {
    ++questions;
    co_return addresses;
  }
};

policy::UpstreamHost pinned(const char* address, std::optional<std::uint16_t> port) {
  policy::UpstreamHost host;
  host.address = policy::PinnedAddress{ip(address), port};
  return host;
}

TEST(Dial, APinnedAddressIsDialledAndNothingIsResolved) {
  Worker worker;
  FixedResolver resolver;
  const test::Listener listener;
  const auto host = pinned("127.0.0.1", listener.port());
  const auto dialled = test::run(worker, dial(worker, resolver, test::host("forge.test"), 443, host));
  ASSERT_TRUE(dialled) << dialled.error().detail;
  EXPECT_EQ(dialled->address, ip("127.0.0.1"));
  EXPECT_EQ(dialled->port, listener.port());
  EXPECT_EQ(resolver.questions, 0);
}

TEST(Dial, ARefusedConnectionIsUnreachable) {
  Worker worker;
  FixedResolver resolver;
  std::uint16_t port = 0;
  {
    const test::Listener gone;
    port = gone.port();
  }
  const auto host = pinned("127.0.0.1", std::nullopt);
  const auto dialled = test::run(worker, dial(worker, resolver, test::host("forge.test"), port, host));
  ASSERT_FALSE(dialled);
  EXPECT_EQ(dialled.error().reason, Reason::UpstreamUnreachable);
  EXPECT_EQ(dialled.error().detail,
            "forge.test at 127.0.0.1:" + std::to_string(port) + ": connect: Connection refused");
}

TEST(Dial, AnUpstreamThatDoesNotAnswerIsATimeout) {
  Worker worker;
  FixedResolver resolver;
  // The kernel drops what comes for a full queue of connections.
  const test::Listener full(0);
  const Fd waits = full.connect();
  const auto host = pinned("127.0.0.1", full.port());
  const auto dialled = test::run(
      worker, dial(worker, resolver, test::host("forge.test"), 443, host, std::chrono::milliseconds(1)));
  ASSERT_FALSE(dialled);
  EXPECT_EQ(dialled.error().reason, Reason::UpstreamTimeout);
}

TEST(Dial, EveryAnswerMustBeOneThatMayBeDialled) {
  const struct {
    std::vector<const char*> addresses;
    bool allow_private;
    bool good;
  } cases[] = {
      {{"1.1.1.1"}, false, true},
      {{"1.1.1.1", "2606:4700:4700::1111"}, false, true},
      {{"10.0.0.1"}, false, false},
      {{"10.0.0.1"}, true, true},
      {{"1.1.1.1", "10.0.0.1"}, false, false},
      {{"1.1.1.1", "10.0.0.1"}, true, true},
      {{"1.1.1.1", "127.0.0.1"}, true, false},
      {{"169.254.169.254"}, true, false},
      {{"1.1.1.1", "::1"}, true, false},
      {{"::ffff:1.1.1.1"}, true, false},
      {{"::ffff:127.0.0.1"}, true, false},
  };
  for (const auto& c : cases) {
    std::vector<policy::IpAddress> addresses;
    for (const char* text : c.addresses) addresses.push_back(ip(text));
    policy::UpstreamHost host;
    host.allow_private = c.allow_private;
    const auto status = check_addresses(test::host("forge.test"), addresses, host);
    EXPECT_EQ(status.has_value(), c.good) << c.addresses.back();
    if (!status) {
      EXPECT_EQ(status.error().reason, Reason::AddressDenied);
    }
  }
}

TEST(Dial, ADeniedAddressIsNamedAndNothingIsDialled) {
  Worker worker;
  FixedResolver resolver;
  resolver.addresses = {ip("127.0.0.1")};
  test::Listener listener;
  const policy::UpstreamHost host;
  const auto dialled =
      test::run(worker, dial(worker, resolver, test::host("forge.test"), listener.port(), host));
  ASSERT_FALSE(dialled);
  EXPECT_EQ(dialled.error().reason, Reason::AddressDenied);
  EXPECT_EQ(dialled.error().detail, "forge.test resolves to 127.0.0.1");
  ::fcntl(listener.fd(), F_SETFL, O_NONBLOCK);
  EXPECT_FALSE(listener.accept());
}

TEST(Dial, TheFamiliesTakeTurnsIpv6First) {
  const auto order = [](const std::vector<const char*>& texts) {
    std::vector<policy::IpAddress> addresses;
    for (const char* text : texts) addresses.push_back(ip(text));
    std::vector<std::string> ordered;
    for (const auto& address : in_dialling_order(addresses)) ordered.push_back(address.str());
    return ordered;
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(order({"1.1.1.1", "1.1.1.2", "1.1.1.3", "2606::1", "2606::2"}),
            (Texts{"2606::1", "1.1.1.1", "2606::2", "1.1.1.2", "1.1.1.3"}));
  EXPECT_EQ(order({"2606::1", "2606::2"}), (Texts{"2606::1", "2606::2"}));
  EXPECT_EQ(order({"1.1.1.1", "1.1.1.2"}), (Texts{"1.1.1.1", "1.1.1.2"}));
  EXPECT_EQ(order(std::vector<const char*>(40, "1.1.1.1")).size(), kMaxDialledAddresses);
}

TEST(Dial, AnAddressThatWouldNotBeTriedIsCheckedToo) {
  Worker worker;
  FixedResolver resolver;
  resolver.addresses.assign(kMaxDialledAddresses, ip("1.1.1.1"));
  resolver.addresses.push_back(ip("127.0.0.1"));
  const auto dialled = test::run(
      worker, dial(worker, resolver, test::host("forge.test"), 443, {}, std::chrono::milliseconds(1)));
  ASSERT_FALSE(dialled);
  EXPECT_EQ(dialled.error().reason, Reason::AddressDenied);
}

// The catalogue's E1 to E16: what a name server may answer for an allowed name.
TEST(Dial, NoSpecialAddressIsDialled) {
  const struct {
    const char* address;
    bool opened_by_allow_private;
  } cases[] = {
      {"10.0.0.1", true},
      {"172.16.0.1", true},
      {"192.168.0.1", true},
      {"127.0.0.1", false},
      {"0.0.0.0", false},
      {"169.254.169.254", false},
      {"169.254.170.2", false},
      {"169.254.170.23", false},
      {"100.100.100.200", false},
      {"fd00:ec2::254", false},
      {"fd00:ec2::23", false},
      {"fd20:ce::254", false},
      {"fd00:c1::a9fe:a9fe", false},
      {"fd00:42::42", false},
      {"fe80::a9fe:a9fe", false},
      {"100.64.0.1", true},
      {"198.18.0.1", false},
      {"192.0.0.1", false},
      {"192.0.2.1", false},
      {"198.51.100.1", false},
      {"203.0.113.1", false},
      {"240.0.0.1", false},
      {"255.255.255.255", false},
      {"224.0.0.1", false},
      {"::ffff:10.0.0.1", false},
      {"64:ff9b::a00:1", false},
      {"2002:a00:1::1", false},
      {"2001:0:4136:e378:8000:63bf:3fff:fdd2", false},
      {"::a00:1", false},
      {"fec0::1", false},
      {"ff02::1", false},
      {"3fff::1", false},
      {"5f00::1", false},
      {"168.63.129.16", false},
      {"fd12:3456:789a::1", true},
  };
  Worker worker;
  for (const auto& c : cases) {
    // Alone, and on either side of one that is good.
    for (const auto& answer :
         {std::vector{ip(c.address)}, {ip(c.address), ip("1.1.1.1")}, {ip("1.1.1.1"), ip(c.address)}}) {
      FixedResolver resolver;
      resolver.addresses = answer;
      const auto dialled = test::run(worker, dial(worker, resolver, test::host("forge.test"), 443, {}));
      ASSERT_FALSE(dialled) << c.address;
      EXPECT_EQ(dialled.error().reason, Reason::AddressDenied) << c.address;
      EXPECT_EQ(dialled.error().detail, "forge.test resolves to " + ip(c.address).str());
      EXPECT_EQ(resolver.questions, 1);
    }
    policy::UpstreamHost host;
    host.allow_private = true;
    EXPECT_EQ(check_addresses(test::host("forge.test"), {ip(c.address)}, host).has_value(),
              c.opened_by_allow_private)
        << c.address;
  }
}

// What follows runs in a network of its own where every address is this machine.
constexpr std::uint16_t kPort = 4443;  // needs no privilege

void enter_own_network() {
  const bool entered =
      ::geteuid() == 0 ? ::unshare(CLONE_NEWNET) == 0 : os::enter_new_namespaces().has_value();
  const auto route = os::open_route_socket(0);
  if (!entered || !route || !os::raise_loopback(route->get()) ||
      !os::route_everything_to_loopback(route->get(), AF_INET)) {
    ::_exit(2);
  }
}

Fd listen_at(const char* address) {
  Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
  const auto at = os::socket_address(os::endpoint_from(address, kPort).value());
  if (::bind(listener.get(), at.get(), at.length) != 0 || ::listen(listener.get(), 4) != 0) ::_exit(3);
  return listener;
}

[[noreturn]] void dial_two_addresses() {
  enter_own_network();
  const Fd listener = listen_at("9.9.9.9");
  Worker worker;
  FixedResolver resolver;
  resolver.addresses = {ip("1.1.1.1"), ip("9.9.9.9")};
  const auto dialled = test::run(worker, dial(worker, resolver, test::host("forge.test"), kPort, {}));
  const bool good = dialled && dialled->address == ip("9.9.9.9") && resolver.questions == 1;
  ::_exit(good ? 0 : 1);
}

TEST(DialDeathTest, TriesTheNextAddressWhenOneRefuses) {
  EXPECT_EXIT(dial_two_addresses(), ::testing::ExitedWithCode(0), "");
}

// The catalogue's E18: a public address the first time, loopback from then on.
[[noreturn]] void dial_a_name_that_changes_its_mind() {
  enter_own_network();
  const Fd good = listen_at("9.9.9.9");
  const Fd inside = listen_at("127.0.0.1");
  Worker worker;
  test::NameServer server(worker);
  server.records["rebind.test"] = {"9.9.9.9"};
  int answers = 0;
  server.say = [&](test::DnsReply reply) {
    constexpr int kFamilies = 2;
    if (++answers > kFamilies && !reply.answers.empty()) reply.answers.front().value = "127.0.0.1";
    return std::vector{reply};
  };
  const auto resolver = Resolver::make(worker, {server.address}).value();
  const auto dial_it = [&] {
    return test::run(worker, dial(worker, *resolver, test::host("rebind.test"), kPort, {}));
  };
  const auto first = dial_it();
  if (!first || first->address != ip("9.9.9.9") || server.asked.size() != 2) ::_exit(4);
  const auto second = dial_it();
  if (second || second.error().reason != Reason::AddressDenied || server.asked.size() != 4) ::_exit(5);
  const Fd accepted(::accept(good.get(), nullptr, nullptr));
  const Fd rebound(::accept(inside.get(), nullptr, nullptr));
  ::_exit(accepted && !rebound ? 0 : 1);
}

TEST(DialDeathTest, AsksOnceAndDialsWhatItChecked) {
  EXPECT_EXIT(dial_a_name_that_changes_its_mind(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace sallyport::net
