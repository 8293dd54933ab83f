#include "net/stream.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "net/event.h"
#include "net/test_support.h"
#include "os/unix_socket.h"

namespace sallyport::net {
namespace {

using std::chrono::milliseconds;

// A stream and the raw other end.
struct Pair {
  explicit Pair(Worker& worker, Peer peer = Peer::Client) {
    test::Listener listener;
    other = listener.connect();
    stream = make_socket_stream(worker, listener.accept(), peer);
  }
  std::unique_ptr<Stream> stream;
  Fd other;
};

Task<Result<std::size_t>> read(Stream& stream) {
  std::array<char, 64> buffer{};
  co_return co_await stream.read_some(buffer);
}

// Bytes of the position-dependent test pattern.
char pattern(std::uint64_t position) {
  return static_cast<char>(position * 131 + position / 251);
}

Task<> send_pattern(Stream& stream, std::uint64_t total, Event& done) {
  std::string buffer;
  for (std::uint64_t at = 0; at < total;) {
    buffer.resize(std::min<std::uint64_t>(60'000, total - at));
    for (char& c : buffer) c = pattern(at++);
    const auto sent = co_await stream.write_all(buffer);
    EXPECT_TRUE(sent);
    if (!sent) break;
  }
  EXPECT_TRUE(co_await stream.shutdown_write());
  done.set();
}

Task<> expect_pattern(Stream& stream, std::uint64_t total, Event& done) {
  std::vector<char> buffer(64 * 1024);
  std::uint64_t at = 0;
  bool same = true;
  for (;;) {
    const auto got = co_await stream.read_some(buffer);
    EXPECT_TRUE(got);
    if (!got || *got == 0) break;
    for (std::size_t i = 0; i < *got; ++i) same = same && buffer[i] == pattern(at + i);
    at += *got;
  }
  EXPECT_EQ(at, total);
  EXPECT_TRUE(same);
  done.set();
}

void move_both_ways(Worker& worker, Stream& a, Stream& b, std::uint64_t total) {
  Event done[4] = {Event(worker), Event(worker), Event(worker), Event(worker)};
  worker.spawn("a writes", send_pattern(a, total, done[0]));
  worker.spawn("b writes", send_pattern(b, total, done[1]));
  worker.spawn("a reads", expect_pattern(a, total, done[2]));
  worker.spawn("b reads", expect_pattern(b, total, done[3]));
  test::run(worker, [](Event* events) -> Task<> {
    for (int i = 0; i < 4; ++i) co_await events[i].wait();
  }(done));
}

TEST(Stream, Moves100MiBBothWaysAtOnce) {
  Worker worker;
  test::Listener listener;
  auto a = make_socket_stream(worker, listener.connect(), Peer::Client);
  auto b = make_socket_stream(worker, listener.accept(), Peer::Upstream);
  move_both_ways(worker, *a, *b, 100ULL << 20);
}

TEST(TlsStream, Moves100MiBBothWaysAtOnce) {
  test::ignore_sigpipe();
  Worker worker;
  test::Listener listener;
  const auto ca = make_session_ca("00000000").value();
  const auto server_side = test::server_context(make_leaf(ca, test::host("forge.test")).value());
  const auto client_side = make_client_context(certificate_pem(*ca.certificate).value()).value();
  std::unique_ptr<Stream> server;
  Fd to = listener.connect();
  worker.spawn("server", [](Worker& w, SSL_CTX& context, Fd fd, std::unique_ptr<Stream>& out) -> Task<> {
    auto accepted = co_await accept_tls(w, context, nullptr, std::move(fd), std::chrono::seconds(10));
    EXPECT_TRUE(accepted);
    if (accepted) out = std::move(accepted->stream);
  }(worker, *server_side, listener.accept(), server));
  auto client = test::run(worker, connect_tls(worker, *client_side, std::move(to), test::host("forge.test"),
                                              std::chrono::seconds(10)));
  ASSERT_TRUE(client) << client.error().detail;
  test::run(worker, worker.sleep(milliseconds(0)));
  while (!server) test::run(worker, worker.sleep(milliseconds(1)));
  move_both_ways(worker, **client, *server, 100ULL << 20);
}

TEST(Stream, AnOrderlyEndIsZeroAndTheOtherDirectionGoesOn) {
  Worker worker;
  Pair pair(worker);
  ::shutdown(pair.other.get(), SHUT_WR);
  EXPECT_EQ(test::run(worker, read(*pair.stream)), 0U);
  EXPECT_TRUE(test::run(worker, pair.stream->write_all("still")));
  std::array<char, 8> buffer{};
  EXPECT_EQ(::recv(pair.other.get(), buffer.data(), buffer.size(), 0), 5);
}

TEST(Stream, ATimeoutIsTheFaultOfItsPeer) {
  const struct {
    Peer peer;
    Reason reason;
  } cases[] = {{Peer::Client, Reason::ClientTimeout},
               {Peer::Upstream, Reason::UpstreamTimeout},
               {Peer::Vault, Reason::VaultUnavailable}};
  Worker worker;
  for (const auto& c : cases) {
    Pair pair(worker, c.peer);
    pair.stream->limit_idle(milliseconds(1));
    const auto got = test::run(worker, read(*pair.stream));
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().reason, c.reason);
    // Finished for good, whatever arrives.
    EXPECT_EQ(::send(pair.other.get(), "x", 1, 0), 1);
    pair.stream->limit_idle(std::chrono::hours(1));
    const auto later = test::run(worker, read(*pair.stream));
    ASSERT_FALSE(later);
    EXPECT_EQ(later.error().reason, c.reason);
  }
}

TEST(Stream, ATotalLimitIsNotPushedAwayByBytes) {
  Worker worker;
  Pair pair(worker);
  pair.stream->limit_total(milliseconds(1));
  std::size_t reads = 0;
  worker.spawn("drips", [](Worker& w, int fd) -> Task<> {
    while (::send(fd, "x", 1, MSG_NOSIGNAL) == 1) co_await w.sleep(milliseconds(5));
  }(worker, pair.other.get()));
  const Reason reason = test::run(worker, [](Stream& stream, std::size_t& count) -> Task<Reason> {
    for (;;) {
      const auto got = co_await read(stream);
      if (!got) co_return got.error().reason;
      ++count;
    }
  }(*pair.stream, reads));
  EXPECT_EQ(reason, Reason::ClientTimeout);
  EXPECT_GT(reads, 0U);
  ::shutdown(pair.other.get(), SHUT_RDWR);
}

TEST(Stream, CloseWakesWhoeverWaits) {
  const struct {
    Peer peer;
    Reason reason;
  } cases[] = {{Peer::Client, Reason::ClientClosed},
               {Peer::Upstream, Reason::UpstreamClosed},
               {Peer::Vault, Reason::VaultUnavailable}};
  Worker worker;
  for (const auto& c : cases) {
    Pair pair(worker, c.peer);
    worker.spawn("closes", [](Stream& stream) -> Task<> {
      stream.close();
      stream.close();
      co_return;
    }(*pair.stream));
    const auto got = test::run(worker, read(*pair.stream));
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().reason, c.reason);
    const auto ready = test::run(worker, pair.stream->wait_readable());
    ASSERT_FALSE(ready);
    EXPECT_EQ(ready.error().reason, c.reason);
    const auto sent = test::run(worker, pair.stream->write_all("x"));
    ASSERT_FALSE(sent);
    EXPECT_EQ(sent.error().reason, c.reason);
    EXPECT_FALSE(pair.stream->quiet());
  }
}

TEST(Stream, WhatAPeerSaidBeforeItResetCanBeReadAndNeverEndsOrderly) {
  Worker worker;
  Pair pair(worker, Peer::Upstream);
  // Unread bytes in its queue make close() a reset.
  ASSERT_TRUE(test::run(worker, pair.stream->write_all("unread")));
  ASSERT_EQ(::send(pair.other.get(), "bye", 3, 0), 3);
  pair.other.reset();
  Status sent;
  while (sent) sent = test::run(worker, pair.stream->write_all("more"));
  EXPECT_EQ(sent.error().reason, Reason::UpstreamClosed);
  EXPECT_EQ(test::run(worker, read(*pair.stream)), 3U);
  const auto end = test::run(worker, read(*pair.stream));
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().reason, Reason::UpstreamClosed);
}

TEST(Stream, APeerThatIsAlwaysReadyLeavesTurnsToOthers) {
  Worker worker;
  Pair pair(worker);
  ASSERT_EQ(::send(pair.other.get(), std::string(10'000, 'x').data(), 10'000, 0), 10'000);
  int others = 0;
  worker.spawn("other", [](Worker& w, int& turns) -> Task<> {
    for (; turns < 1000; ++turns) co_await w.sleep(Clock::duration::zero());
  }(worker, others));
  test::run(worker, [](Stream& stream) -> Task<> {
    std::array<char, 1> byte{};
    for (int i = 0; i < 10'000; ++i) EXPECT_EQ(co_await stream.read_some(byte), 1U);
  }(*pair.stream));
  EXPECT_GT(others, 10);
}

TEST(Stream, QuietMeansOpenAndNothingToRead) {
  Worker worker;
  Pair pair(worker);
  EXPECT_TRUE(pair.stream->quiet());
  ASSERT_EQ(::send(pair.other.get(), "x", 1, 0), 1);
  EXPECT_TRUE(test::run(worker, pair.stream->wait_readable()));
  EXPECT_FALSE(pair.stream->quiet());
  EXPECT_EQ(test::run(worker, read(*pair.stream)), 1U);
  EXPECT_TRUE(pair.stream->quiet());
  pair.other.reset();
  EXPECT_TRUE(test::run(worker, pair.stream->wait_readable()));
  EXPECT_FALSE(pair.stream->quiet());
}

TEST(SocketStream, GivesItsSocketAwayOnce) {
  Worker worker;
  Pair pair(worker);
  const Fd socket = pair.stream->release();
  ASSERT_TRUE(socket);
  EXPECT_FALSE(pair.stream->release());
  EXPECT_FALSE(test::run(worker, pair.stream->write_all("x")));
  pair.stream.reset();
  ASSERT_EQ(::send(socket.get(), "x", 1, MSG_NOSIGNAL), 1);
  char byte = 0;
  EXPECT_EQ(::recv(pair.other.get(), &byte, 1, 0), 1);
}

}  // namespace
}  // namespace sallyport::net
