#include "net/connect_race.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>

#include "net/test_support.h"

namespace sallyport::net {
namespace {

os::Endpoint loopback(std::uint16_t port) {
  return os::endpoint_from("127.0.0.1", port).value();
}

// The kernel drops what comes for a full queue of connections: an address that says nothing.
struct Silent {
  test::Listener listener{0};
  Fd fills = listener.connect();
};

std::uint16_t free_port() {
  const test::Listener gone;
  return gone.port();
}

std::ptrdiff_t open_files() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

class ConnectFirst : public testing::Test {
 protected:
  Result<Connected> connect(std::vector<os::Endpoint> endpoints,
                            Clock::duration limit = std::chrono::seconds(10)) {
    return test::run(worker, connect_first(worker, std::move(endpoints), limit));
  }

  Worker worker;
  test::Listener listener;
};

TEST_F(ConnectFirst, TheFirstThatConnectsWins) {
  const test::Listener other;
  const auto got = connect({loopback(listener.port()), loopback(other.port())});
  ASSERT_TRUE(got) << got.error().detail;
  EXPECT_EQ(got->peer, loopback(listener.port()));
  EXPECT_TRUE(listener.accept());
}

TEST_F(ConnectFirst, ASilentAddressIsPassedAndItsSocketClosed) {
  const Silent silent;
  const auto before = open_files();
  {
    const auto got = connect({loopback(silent.listener.port()), loopback(listener.port())});
    ASSERT_TRUE(got) << got.error().detail;
    EXPECT_EQ(got->peer, loopback(listener.port()));
    EXPECT_EQ(open_files(), before + 1);
  }
  EXPECT_EQ(open_files(), before);
}

TEST_F(ConnectFirst, OneThatFailsLetsTheNextStartAtOnce) {
  // One delay after the other would take longer than the limit.
  constexpr std::size_t kRefusing = 40;
  static_assert(kRefusing * kConnectionAttemptDelay > std::chrono::seconds(8));
  std::vector<os::Endpoint> endpoints(kRefusing, loopback(free_port()));
  endpoints.push_back(loopback(listener.port()));
  const auto got = connect(endpoints, std::chrono::seconds(8));
  ASSERT_TRUE(got) << got.error().detail;
  EXPECT_EQ(got->peer, loopback(listener.port()));
}

TEST_F(ConnectFirst, SoDoesOneThatTheKernelDoesNotEvenTry) {
  // As a host without IPv6 answers for every address of that family. TCP has no broadcast.
  const auto nowhere = os::endpoint_from("255.255.255.255", 443).value();
  std::vector<os::Endpoint> endpoints(40, nowhere);
  endpoints.push_back(loopback(listener.port()));
  const auto got = connect(endpoints, std::chrono::seconds(8));
  ASSERT_TRUE(got) << got.error().detail;
  EXPECT_EQ(got->peer, loopback(listener.port()));
}

TEST_F(ConnectFirst, MoreSilentOnesThanMayBeUnderWayDoNotHideTheNext) {
  const Silent silent;
  std::vector<os::Endpoint> endpoints(kMaxConcurrentAttempts + 1, loopback(silent.listener.port()));
  endpoints.push_back(loopback(listener.port()));
  const auto before = open_files();
  const auto got = connect(endpoints, std::chrono::seconds(2));
  ASSERT_TRUE(got) << got.error().detail;
  EXPECT_EQ(got->peer, loopback(listener.port()));
  EXPECT_EQ(open_files(), before + 1);
}

TEST_F(ConnectFirst, WhenAllFailTheLastSaysWhy) {
  const auto port = free_port();
  const auto got = connect({os::endpoint_from("127.0.0.2", port).value(), loopback(port)});
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().reason, Reason::UpstreamUnreachable);
  EXPECT_EQ(got.error().detail, loopback(port).text() + ": connect: Connection refused");
}

TEST_F(ConnectFirst, TheLimitIsForAllOfThem) {
  const Silent silent;
  const auto before = open_files();
  const auto got =
      connect({loopback(free_port()), loopback(silent.listener.port())}, std::chrono::milliseconds(500));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().reason, Reason::UpstreamTimeout);
  EXPECT_EQ(got.error().detail, loopback(silent.listener.port()).text() + ": connecting took too long");
  EXPECT_EQ(open_files(), before);
}

TEST_F(ConnectFirst, MayGoWhileAttemptsAreUnderWay) {
  const Silent silent;
  const auto before = open_files();
  {
    Worker home;
    home.spawn("connects", [](Worker& w, os::Endpoint to) -> Task<> {
      (void)co_await connect_first(w, {to, to}, std::chrono::seconds(10));
    }(home, loopback(silent.listener.port())));
    test::run(home, home.sleep(std::chrono::milliseconds(1)));
  }
  EXPECT_EQ(open_files(), before);
}

}  // namespace
}  // namespace sallyport::net
