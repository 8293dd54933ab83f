#include "net/tunnel.h"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <memory>
#include <random>
#include <string>

#include "net/test_support.h"

namespace sallyport::net {
namespace {

using std::chrono::milliseconds;

// A tunnel between two peers who are streams of this worker too.
class Tunnels : public ::testing::Test {
 protected:
  struct Peers {
    std::unique_ptr<Tunnel> tunnel;
    std::unique_ptr<Stream> client;
    std::unique_ptr<Stream> upstream;
    std::optional<TunnelEnd> ended;
    std::unique_ptr<Event> over;
  };

  Tunnels() { test::ignore_sigpipe(); }

  // The peer's end, and the tunnel's.
  static std::pair<Fd, Fd> connected() {
    test::Listener listener;
    Fd peer = listener.connect();
    return {std::move(peer), listener.accept()};
  }

  std::unique_ptr<Peers> make(TunnelLimits limits = {}) {
    auto peers = std::make_unique<Peers>();
    auto [client, client_side] = connected();
    auto [upstream, upstream_side] = connected();
    client_fd_ = client.get();
    upstream_fd_ = upstream.get();
    peers->client = make_socket_stream(worker_, std::move(client), Peer::Client);
    peers->upstream = make_socket_stream(worker_, std::move(upstream), Peer::Upstream);
    peers->over = std::make_unique<Event>(worker_);
    peers->tunnel =
        std::make_unique<Tunnel>(worker_, pipes_, std::move(client_side), std::move(upstream_side), limits);
    return peers;
  }
  std::unique_ptr<Peers> start(TunnelLimits limits = {}, TunnelStart early = {}) {
    auto peers = make(limits);
    worker_.spawn("tunnel under test", run_tunnel(*peers, std::move(early)));
    return peers;
  }
  static Task<> run_tunnel(Peers& peers, TunnelStart early) {
    peers.ended = co_await peers.tunnel->run(std::move(early));
    peers.over->set();
  }

  // `fd` is the stream's.
  static void reset(std::unique_ptr<Stream>& stream, int fd) {
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    stream->close();
  }

  Worker worker_;
  PipePool pipes_;
  int client_fd_ = -1;  // of the peers that were made last
  int upstream_fd_ = -1;
};

std::string random_bytes(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

std::size_t open_files() {
  const auto files = std::filesystem::directory_iterator("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}

Task<std::string> read_bytes(Stream& stream, std::size_t bytes) {
  std::string all;
  std::vector<char> buffer(64 * 1024);
  while (all.size() < bytes) {
    const auto got =
        co_await stream.read_some(std::span(buffer).first(std::min(buffer.size(), bytes - all.size())));
    if (!got || *got == 0) break;
    all.append(buffer.data(), *got);
  }
  co_return all;
}
Task<bool> reads_end(Stream& stream) {
  char byte = 0;
  const auto got = co_await stream.read_some({&byte, 1});
  co_return got && *got == 0;
}
Task<bool> reads_reset(Stream& stream) {
  char byte = 0;
  const auto got = co_await stream.read_some({&byte, 1});
  co_return !got;
}

Task<> send_in_pieces(Stream& stream, const std::string& bytes, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<std::size_t> sizes(1, 100'000);
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t size = std::min(sizes(random), bytes.size() - at);
    EXPECT_TRUE(co_await stream.write_all(std::string_view(bytes).substr(at, size)));
    at += size;
  }
  EXPECT_TRUE(co_await stream.shutdown_write());
}
Task<> expect_bytes(Stream& stream, const std::string& bytes, Event& done) {
  EXPECT_TRUE(co_await read_bytes(stream, bytes.size()) == bytes);
  EXPECT_TRUE(co_await reads_end(stream));
  done.set();
}

TEST_F(Tunnels, MoveBytesExactlyBothWaysAtOnce) {
  const std::string up = random_bytes(5'000'001, 1);
  const std::string down = random_bytes(3'000'017, 2);
  const auto peers = start();
  Event all_up(worker_);
  Event all_down(worker_);
  worker_.spawn("client sends", send_in_pieces(*peers->client, up, 3));
  worker_.spawn("upstream sends", send_in_pieces(*peers->upstream, down, 4));
  worker_.spawn("client reads", expect_bytes(*peers->client, down, all_down));
  worker_.spawn("upstream reads", expect_bytes(*peers->upstream, up, all_up));
  test::run(worker_, [](Peers& p, Event& one, Event& other) -> Task<> {
    co_await one.wait();
    co_await other.wait();
    co_await p.over->wait();
  }(*peers, all_up, all_down));
  EXPECT_EQ(peers->ended->why, TunnelEnding::Clean);
  EXPECT_EQ(peers->ended->bytes_up, up.size());
  EXPECT_EQ(peers->ended->bytes_down, down.size());
}

// `one` ends first; what the other says afterwards still arrives.
Task<> end_in_order(Stream& one, Stream& other, Event& over) {
  EXPECT_TRUE(co_await one.write_all("question"));
  EXPECT_TRUE(co_await one.shutdown_write());
  EXPECT_EQ(co_await read_bytes(other, 100), "question");
  EXPECT_FALSE(over.is_set());
  EXPECT_TRUE(co_await other.write_all("answer"));
  EXPECT_EQ(co_await read_bytes(one, 6), "answer");
  EXPECT_TRUE(co_await other.shutdown_write());
  EXPECT_TRUE(co_await reads_end(one));
  co_await over.wait();
}

TEST_F(Tunnels, PassOneSidesEndOnAndGoOnWithTheOther) {
  const auto first = start();
  test::run(worker_, end_in_order(*first->client, *first->upstream, *first->over));
  EXPECT_EQ(first->ended->why, TunnelEnding::Clean);
  EXPECT_EQ(first->ended->bytes_up, 8U);
  EXPECT_EQ(first->ended->bytes_down, 6U);

  const auto second = start();
  test::run(worker_, end_in_order(*second->upstream, *second->client, *second->over));
  EXPECT_EQ(second->ended->why, TunnelEnding::Clean);
  EXPECT_EQ(second->ended->bytes_up, 6U);
}

TEST_F(Tunnels, TellTheOtherSideOfAReset) {
  const auto by_client = start();
  test::run(worker_, [](Peers& p, int fd) -> Task<> {
    EXPECT_TRUE(co_await p.client->write_all("x"));
    EXPECT_EQ(co_await read_bytes(*p.upstream, 1), "x");
    reset(p.client, fd);
    EXPECT_TRUE(co_await reads_reset(*p.upstream));
    co_await p.over->wait();
  }(*by_client, client_fd_));
  EXPECT_EQ(by_client->ended->why, TunnelEnding::ClientReset);
  EXPECT_EQ(by_client->ended->bytes_up, 1U);

  const auto by_upstream = start();
  test::run(worker_, [](Peers& p, int fd) -> Task<> {
    reset(p.upstream, fd);
    EXPECT_TRUE(co_await reads_reset(*p.client));
    co_await p.over->wait();
  }(*by_upstream, upstream_fd_));
  EXPECT_EQ(by_upstream->ended->why, TunnelEnding::UpstreamReset);
}

// The upstream has gone, and is found gone by writing to it.
TEST_F(Tunnels, CallAnUpstreamThatTakesNothingMoreReset) {
  const auto peers = start();
  test::run(worker_, [](Peers& p) -> Task<> {
    EXPECT_TRUE(co_await p.upstream->write_all("goodbye"));
    EXPECT_EQ(co_await read_bytes(*p.client, 7), "goodbye");
    EXPECT_TRUE(co_await p.upstream->shutdown_write());
    EXPECT_TRUE(co_await reads_end(*p.client));
    p.upstream->close();
    while (!p.over->is_set() && co_await p.client->write_all("more"))
      co_await p.over->wait_for(milliseconds(1));
    co_await p.over->wait();
  }(*peers));
  EXPECT_EQ(peers->ended->why, TunnelEnding::UpstreamReset);
  EXPECT_EQ(peers->ended->bytes_down, 7U);
}

Task<> both_reset(std::unique_ptr<Stream>& client, std::unique_ptr<Stream>& upstream, Event& over) {
  EXPECT_TRUE(co_await reads_reset(*client));
  EXPECT_TRUE(co_await reads_reset(*upstream));
  co_await over.wait();
}

TEST_F(Tunnels, EndWhenNothingMovesForTooLong) {
  const auto peers = start({.idle = milliseconds(1)});
  test::run(worker_, both_reset(peers->client, peers->upstream, *peers->over));
  EXPECT_EQ(peers->ended->why, TunnelEnding::Idle);
}

// One direction's bytes push the idle limit away for both.
TEST_F(Tunnels, EndWithTheirLifeWhateverMoves) {
  const auto peers = start({.idle = milliseconds(1000), .life = milliseconds(1500)});
  test::run(worker_, [](Peers& p) -> Task<> {
    while (co_await p.client->write_all("x")) co_await p.over->wait_for(milliseconds(10));
    co_await p.over->wait();
  }(*peers));
  EXPECT_EQ(peers->ended->why, TunnelEnding::Life);
}

TEST_F(Tunnels, MoveTheCapAndNotAByteMore) {
  const auto up = start({.max_bytes_up = 100'000});
  test::run(worker_, [](Peers& p) -> Task<> {
    EXPECT_TRUE(co_await p.client->write_all(std::string(100'000, 'x')));
    EXPECT_EQ((co_await read_bytes(*p.upstream, 100'000)).size(), 100'000U);
    EXPECT_FALSE(p.over->is_set());
    EXPECT_TRUE(co_await p.client->write_all("x"));
    co_await both_reset(p.client, p.upstream, *p.over);
  }(*up));
  EXPECT_EQ(up->ended->why, TunnelEnding::CapUp);
  EXPECT_EQ(up->ended->bytes_up, 100'000U);

  const auto down = start({.max_bytes_down = 10});
  test::run(worker_, [](Peers& p) -> Task<> {
    EXPECT_TRUE(co_await p.upstream->write_all(std::string(1'000'000, 'x')));
    EXPECT_LE((co_await read_bytes(*p.client, 100)).size(), 10U);
    co_await p.over->wait();
  }(*down));
  EXPECT_EQ(down->ended->why, TunnelEnding::CapDown);
  EXPECT_EQ(down->ended->bytes_down, 10U);
}

TEST_F(Tunnels, EndWhenABudgetIsSpentWhoeverSpentIt) {
  TokenBucket budget(Rate{.amount = 1, .per = std::chrono::hours(24), .burst = 10});
  const auto one = start({.budget_up = &budget});
  const auto other = start({.budget_down = &budget});
  test::run(worker_, [](Peers& a, Peers& b) -> Task<> {
    EXPECT_TRUE(co_await a.client->write_all("123456"));
    EXPECT_EQ(co_await read_bytes(*a.upstream, 6), "123456");
    EXPECT_TRUE(co_await b.upstream->write_all("1234567"));
    co_await b.over->wait();
    EXPECT_FALSE(a.over->is_set());
    EXPECT_TRUE(co_await a.client->write_all("x"));
    co_await a.over->wait();
  }(*one, *other));
  EXPECT_EQ(one->ended->why, TunnelEnding::Spent);
  EXPECT_EQ(other->ended->why, TunnelEnding::Spent);
}

TEST_F(Tunnels, EndInOrderExactlyAtTheCap) {
  const auto peers = start({.max_bytes_up = 8, .max_bytes_down = 6});
  test::run(worker_, end_in_order(*peers->client, *peers->upstream, *peers->over));
  EXPECT_EQ(peers->ended->why, TunnelEnding::Clean);
}

TEST_F(Tunnels, EndAtOnceWhenTheOwnerClosesThem) {
  const auto peers = start();
  test::run(worker_, [](Peers& p) -> Task<> {
    EXPECT_TRUE(co_await p.client->write_all("x"));
    EXPECT_EQ(co_await read_bytes(*p.upstream, 1), "x");
    p.tunnel->close();
    co_await both_reset(p.client, p.upstream, *p.over);
    p.tunnel->close();
  }(*peers));
  EXPECT_EQ(peers->ended->why, TunnelEnding::Closed);
  EXPECT_EQ(peers->ended->bytes_up, 1U);
}

TEST_F(Tunnels, MayBeClosedBeforeTheyBeginAndInTheMiddleOfAWrite) {
  const auto early = make();
  early->tunnel->close();
  test::run(worker_, run_tunnel(*early, {.to_upstream = "x", .to_client = "y"}));
  EXPECT_EQ(early->ended->why, TunnelEnding::Closed);

  // Nobody reads: the tunnel waits until it can write.
  const auto stuck = start({}, {.to_upstream = std::string(20'000'000, 'x'), .to_client = ""});
  test::run(worker_, [](Peers& p, Worker& worker) -> Task<> {
    co_await worker.sleep(milliseconds(1));
    p.tunnel->close();
    co_await p.over->wait();
  }(*stuck, worker_));
  EXPECT_EQ(stuck->ended->why, TunnelEnding::Closed);
}

TEST_F(Tunnels, BeginWithWhatWasReadBefore) {
  const std::string large = random_bytes(3'000'000, 7);
  const auto peers = start({}, {.to_upstream = large, .to_client = "early"});
  test::run(worker_, [](Peers& p, const std::string& expected) -> Task<> {
    EXPECT_TRUE(co_await p.client->write_all(" and late"));
    EXPECT_TRUE(co_await p.client->shutdown_write());
    EXPECT_TRUE(co_await read_bytes(*p.upstream, expected.size()) == expected);
    EXPECT_EQ(co_await read_bytes(*p.upstream, 100), " and late");
    EXPECT_TRUE(co_await p.upstream->shutdown_write());
    EXPECT_EQ(co_await read_bytes(*p.client, 100), "early");
    co_await p.over->wait();
  }(*peers, large));
  EXPECT_EQ(peers->ended->why, TunnelEnding::Clean);
  EXPECT_EQ(peers->ended->bytes_up, large.size() + 9);
  EXPECT_EQ(peers->ended->bytes_down, 5U);

  const auto too_much = start({.max_bytes_up = 4}, {.to_upstream = "early", .to_client = ""});
  test::run(worker_, both_reset(too_much->client, too_much->upstream, *too_much->over));
  EXPECT_EQ(too_much->ended->why, TunnelEnding::CapUp);
  EXPECT_EQ(too_much->ended->bytes_up, 0U);
}

TEST_F(Tunnels, SlowASenderDownToItsReader) {
  const auto peers = start();
  const std::string bytes = random_bytes(50'000'000, 8);
  Event sent(worker_);
  worker_.spawn("client sends", [](Stream& s, const std::string& b, Event& done) -> Task<> {
    EXPECT_TRUE(co_await s.write_all(b));
    EXPECT_TRUE(co_await s.shutdown_write());
    done.set();
  }(*peers->client, bytes, sent));
  test::run(worker_, [](Peers& p, const std::string& b, Event& done) -> Task<> {
    // What the kernel's buffers hold is gone soon; then the sender waits for the reader alone.
    EXPECT_FALSE(co_await done.wait_for(milliseconds(300)));
    EXPECT_TRUE(co_await read_bytes(*p.upstream, b.size()) == b);
    EXPECT_TRUE(co_await p.upstream->shutdown_write());
    co_await p.over->wait();
  }(*peers, bytes, sent));
  EXPECT_EQ(peers->ended->why, TunnelEnding::Clean);
  EXPECT_EQ(peers->ended->bytes_up, bytes.size());
}

TEST_F(Tunnels, HoldNoPipeWhileTheyAreIdle) {
  constexpr std::size_t kTunnels = 100;
  const std::size_t files_before = open_files();
  {
    std::vector<std::unique_ptr<Peers>> all;
    for (std::size_t i = 0; i < kTunnels; ++i) all.push_back(start());
    const std::size_t files_of_sockets = open_files();
    test::run(worker_, [](std::vector<std::unique_ptr<Peers>>& tunnels) -> Task<> {
      for (const auto& p : tunnels) {
        EXPECT_TRUE(co_await p->client->write_all("ping"));
        EXPECT_TRUE(co_await p->upstream->write_all("pong"));
      }
      for (const auto& p : tunnels) {
        EXPECT_EQ(co_await read_bytes(*p->upstream, 4), "ping");
        EXPECT_EQ(co_await read_bytes(*p->client, 4), "pong");
      }
    }(all));
    EXPECT_GE(pipes_.size(), 1U);
    EXPECT_LE(pipes_.size(), kMaxPooledPipes);
    EXPECT_EQ(open_files(), files_of_sockets + 2 * pipes_.size());
    test::run(worker_, [](std::vector<std::unique_ptr<Peers>>& tunnels) -> Task<> {
      for (const auto& p : tunnels) p->tunnel->close();
      for (const auto& p : tunnels) co_await p->over->wait();
    }(all));
  }
  EXPECT_EQ(open_files(), files_before + 2 * pipes_.size());
}

TEST(PipePool, KeepsNoMoreThanItsLimit) {
  const std::size_t files_before = open_files();
  PipePool pool;
  std::vector<Pipe> taken;
  for (std::size_t i = 0; i < 2 * kMaxPooledPipes; ++i) taken.push_back(pool.take().value());
  for (Pipe& pipe : taken) pool.give_back(std::move(pipe));
  EXPECT_EQ(pool.size(), kMaxPooledPipes);
  EXPECT_EQ(open_files(), files_before + 2 * kMaxPooledPipes);
}

}  // namespace
}  // namespace sallyport::net
