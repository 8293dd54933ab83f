#include "net/dial.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include "net/test_support.h"
#include "os/netlink.h"
#include "os/userns.h"

namespace sallyport::net {
namespace {

policy::IpAddress ip(std::string_view text) {
  return policy::IpAddress::parse(text).value();
}

class FixedResolver final : public Resolver {
 public:
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

// In a network of its own where every address is this machine: 1.1.1.1 refuses, 9.9.9.9 listens.
[[noreturn]] void dial_two_addresses_in_own_network() {
  const bool entered =
      ::geteuid() == 0 ? ::unshare(CLONE_NEWNET) == 0 : os::enter_new_namespaces().has_value();
  const auto route = os::open_route_socket(0);
  if (!entered || !route || !os::raise_loopback(route->get()) ||
      !os::route_everything_to_loopback(route->get(), AF_INET)) {
    ::_exit(2);
  }
  const Fd listener(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  ::inet_pton(AF_INET, "9.9.9.9", &at.sin_addr);
  constexpr std::uint16_t kPort = 4443;  // needs no privilege
  at.sin_port = htons(kPort);
  if (::bind(listener.get(), reinterpret_cast<sockaddr*>(&at), sizeof at) != 0 ||
      ::listen(listener.get(), 4) != 0) {
    ::_exit(3);
  }
  Worker worker;
  FixedResolver resolver;
  resolver.addresses = {ip("1.1.1.1"), ip("9.9.9.9")};
  const policy::UpstreamHost host;
  const auto dialled = test::run(worker, dial(worker, resolver, test::host("forge.test"), kPort, host));
  const bool good = dialled && dialled->address == ip("9.9.9.9") && resolver.questions == 1;
  ::_exit(good ? 0 : 1);
}

TEST(DialDeathTest, TriesTheNextAddressWhenOneRefuses) {
  EXPECT_EXIT(dial_two_addresses_in_own_network(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace sallyport::net
