#include "upstream/pool.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "net/test_support.h"

namespace sallyport::upstream {
namespace {

using std::chrono::milliseconds;

class PoolTest : public ::testing::Test {
 protected:
  std::unique_ptr<net::Stream> connection() {
    auto stream = net::make_socket_stream(worker, listener.connect(), net::Peer::Upstream);
    others.push_back(listener.accept());
    return stream;
  }

  net::Worker worker;
  net::test::Listener listener;
  std::vector<Fd> others;
  PoolKey key{net::test::host("forge.test"), 443, ""};
};

TEST_F(PoolTest, HoldsOnlySoManyOfOneKeyAndOfAll) {
  Pool pool(worker);
  for (std::size_t i = 0; i < kMaxIdlePerKey + 2; ++i) pool.put(key, connection());
  EXPECT_EQ(pool.size(), kMaxIdlePerKey);
  for (std::size_t i = 0; i < kMaxIdle + 2; ++i) {
    pool.put({key.host, 443, "credential " + std::to_string(i)}, connection());
  }
  EXPECT_EQ(pool.size(), kMaxIdle);
  EXPECT_EQ(pool.take(key), nullptr) << "the oldest went first";
}

TEST_F(PoolTest, GivesOnlyWhatIsOpenAndSilent) {
  Pool pool(worker);
  pool.put(key, connection());
  pool.put(key, connection());
  pool.put(key, connection());
  ASSERT_EQ(::send(others[2].get(), "x", 1, 0), 1);
  others[1].reset();
  EXPECT_NE(pool.take(key), nullptr);
  EXPECT_EQ(pool.take(key), nullptr);
  EXPECT_EQ(pool.size(), 0U);
}

TEST_F(PoolTest, ClosesWhatWaitsTooLong) {
  Pool pool(worker, milliseconds(1));
  pool.put(key, connection());
  std::array<char, 1> byte{};
  const auto other = net::make_socket_stream(worker, std::move(others[0]), net::Peer::Client);
  EXPECT_EQ(net::test::run(worker, other->read_some(byte)), 0U);
  EXPECT_EQ(pool.size(), 0U);
}

}  // namespace
}  // namespace sallyport::upstream
