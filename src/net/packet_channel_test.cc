#include "net/packet_channel.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include "net/test_support.h"

namespace sallyport::net {
namespace {

struct Ends {
  explicit Ends(Worker& worker) {
    auto pair = os::socket_pair(os::SocketKind::Packet).value();
    channel = PacketChannel::make(worker, std::move(pair.first));
    other = std::move(pair.second);
  }
  std::unique_ptr<PacketChannel> channel;
  Fd other;
};

TEST(PacketChannel, CarriesMessagesWithDescriptors) {
  Worker worker;
  Ends ends(worker);
  std::vector<Fd> fds;
  fds.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(ends.channel->send("hello", std::move(fds)));
  const auto got = os::recv_packet(ends.other.get());
  ASSERT_TRUE(got && *got);
  EXPECT_EQ((*got)->bytes, "hello");
  EXPECT_EQ((*got)->fds.size(), 1U);

  ASSERT_TRUE(os::send_packet(ends.other.get(), "back"));
  const auto back = test::run(worker, ends.channel->receive());
  ASSERT_TRUE(back && *back);
  EXPECT_EQ((*back)->bytes, "back");
}

TEST(PacketChannel, QueuesInOrderUpToItsLimit) {
  Worker worker;
  Ends ends(worker);
  std::size_t sent = 0;
  Status last;
  for (;;) {
    last = ends.channel->send(std::to_string(sent), {});
    if (!last) break;
    ++sent;
  }
  EXPECT_EQ(last.error().reason, Reason::Overloaded);
  EXPECT_GE(sent, PacketChannel::kMaxQueued);
  worker.spawn("peer", [](Worker& w, int fd, std::size_t count) -> Task<> {
    EXPECT_TRUE(os::set_nonblocking(fd));
    for (std::size_t next = 0; next < count;) {
      auto packet = os::recv_packet(fd);
      EXPECT_TRUE(packet);
      if (packet && *packet) {
        EXPECT_EQ((*packet)->bytes, std::to_string(next++));
      } else {
        co_await w.sleep(std::chrono::milliseconds(1));
      }
    }
    w.stop();
  }(worker, ends.other.get(), sent));
  worker.run();
  EXPECT_TRUE(ends.channel->send("room again", {}));
}

TEST(PacketChannel, EndsWhenThePeerGoes) {
  Worker worker;
  Ends ends(worker);
  worker.spawn("peer", [](Fd& fd) -> Task<> {
    fd.reset();
    co_return;
  }(ends.other));
  const auto got = test::run(worker, ends.channel->receive());
  ASSERT_TRUE(got);
  EXPECT_FALSE(got->has_value());
  EXPECT_FALSE(ends.channel->send("x", {}));
}

TEST(PacketChannel, EndsWhenNothingComesInTime) {
  Worker worker;
  Ends ends(worker);
  ASSERT_TRUE(os::send_packet(ends.other.get(), "in time"));
  const auto first = test::run(worker, receive_within(worker, *ends.channel, std::chrono::hours(1)));
  ASSERT_TRUE(first && *first);
  EXPECT_EQ((*first)->bytes, "in time");
  const auto late = test::run(worker, receive_within(worker, *ends.channel, Clock::duration::zero()));
  EXPECT_TRUE(late && !*late);
  EXPECT_FALSE(ends.channel->send("more", {}));
}

TEST(PacketChannel, MayGoWhileMessagesWait) {
  Worker worker;
  Ends ends(worker);
  while (ends.channel->send("x", {})) {
  }
  ends.channel.reset();
  test::run(worker, worker.sleep(std::chrono::milliseconds(1)));
}

}  // namespace
}  // namespace sallyport::net
