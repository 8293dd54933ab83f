#include "upstream/connector.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "upstream/answers_file_test.h"
#include "upstream/connector_fixture.h"
#include "upstream/direct.h"
#include "upstream/limits.h"
#include "wire/chunked.h"

namespace sallyport::upstream {
namespace {

using namespace test;

TEST_F(ConnectorTest, WritesItsOwnHeadAndFraming) {
  answer_all(kOk);
  Request asked = request();
  asked.headers = {{"git-protocol", "version=2"}, {"user-agent", "git/2.39"}};
  auto exchange = open(asked);
  ASSERT_TRUE(net::test::run(worker, exchange->end_body()));
  const Answer answer = net::test::run(worker, read_answer(*exchange));
  ASSERT_TRUE(answer.head) << answer.head.error().detail;
  EXPECT_EQ(answer.body, "ok");
  ASSERT_TRUE(answer.end);
  EXPECT_EQ(heads.at(0),
            "GET /acme/widget/info/refs?service=git-upload-pack HTTP/1.1\r\nHost: forge.test\r\n"
            "git-protocol: version=2\r\nuser-agent: git/2.39\r\n\r\n");

  exchange = open(request(BodyKind::Declared, 0), credential("forge", "Authorization: Basic eDp5"));
  ASSERT_TRUE(net::test::run(worker, exchange->end_body()));
  ASSERT_TRUE(net::test::run(worker, read_answer(*exchange)).head);
  EXPECT_EQ(heads.at(1),
            "POST /acme/widget/git-upload-pack HTTP/1.1\r\nHost: forge.test\r\nContent-Length: 0\r\n"
            "Authorization: Basic eDp5\r\n\r\n");
}

TEST_F(ConnectorTest, LimitsTheHeadItSends) {
  answer_all(kOk);
  Request asked = request();
  asked.headers = {{"user-agent", std::string(kMaxRequestHeadBytes, 'x')}};
  EXPECT_EQ(open_failure(asked), Reason::HeadTooLarge);
  asked.headers = {{"user-agent", std::string(kMaxCredentialedHeadBytes, 'x')}};
  EXPECT_EQ(open_failure(asked, credential("forge", "Authorization: x")), Reason::HeadTooLarge);
  EXPECT_EQ(open_failure(asked), Reason::None);
}

TEST_F(ConnectorTest, OpensNothingForWhatMayNotGoUpstream) {
  Request asked = request();
  asked.scheme = Scheme::Http;
  EXPECT_EQ(open_failure(asked, credential("forge", "Authorization: x")), Reason::Internal);
  asked = request();
  asked.headers = {{"connection", "close"}};
  EXPECT_EQ(open_failure(asked), Reason::Internal);
  EXPECT_EQ(server.connections, 0);
}

// TLS and the clear never share a connection.
TEST_F(ConnectorTest, SpeaksHttpInTheClearWhereAsked) {
  net::test::Listener plain;
  auto grant = std::make_shared<policy::Grant>();
  policy::UpstreamHost forge;
  forge.address = policy::parse_pinned_address("127.0.0.1:" + std::to_string(plain.port()));
  grant->hosts.emplace(net::test::host("forge.test"), forge);
  connector = Connector::make(worker, resolver, grant).value();
  Request asked = request();
  asked.scheme = Scheme::Http;
  asked.port = 80;
  {
    const auto exchange = open(asked);
    const auto served = net::make_socket_stream(worker, plain.accept(), net::Peer::Client);
    EXPECT_TRUE(net::test::run(worker, read_request_head(*served)).contains("\r\nHost: forge.test\r\n"));
    EXPECT_TRUE(net::test::run(worker, served->write_all(kOk)));
    EXPECT_TRUE(net::test::run(worker, exchange->end_body()));
    EXPECT_EQ(net::test::run(worker, read_answer(*exchange)).body, "ok");
  }
  EXPECT_EQ(connector->pool().size(), 0U);  // the server has hung up
}

TEST_F(ConnectorTest, HandsOutTheConnectionThatWasSwitched) {
  server.serve = [this](net::Stream& stream, int) -> Task<> {
    heads.push_back(co_await read_request_head(stream));
    EXPECT_TRUE(
        co_await stream.write_all("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
                                  "Upgrade: websocket\r\n\r\nearly"));
    std::array<char, 5> said{};
    const auto got = co_await stream.read_some(said);
    EXPECT_TRUE(got && std::string_view(said.data(), *got) == "hello");
    EXPECT_TRUE(co_await stream.shutdown_write());
  };
  Request asked = request();
  asked.upgrade = "websocket";
  auto exchange = open(asked);
  EXPECT_FALSE(exchange->take_stream());
  ASSERT_TRUE(net::test::run(worker, exchange->end_body()));
  const auto head = net::test::run(worker, exchange->read_head());
  ASSERT_TRUE(head) << head.error().detail;
  EXPECT_EQ(head->status, 101);
  auto switched = exchange->take_stream();
  ASSERT_TRUE(switched);
  EXPECT_EQ(switched->early, "early");
  EXPECT_FALSE(exchange->take_stream());
  exchange->abort();
  exchange.reset();
  EXPECT_TRUE(net::test::run(worker, switched->stream->write_all("hello")));
  std::array<char, 5> byte{};
  const auto end = net::test::run(worker, switched->stream->read_some(byte));
  EXPECT_TRUE(end && *end == 0);
  EXPECT_EQ(connector->pool().size(), 0U);
}

TEST_F(ConnectorTest, RefusesACredentialWithALineEnd) {
  answer_all(kOk);
  EXPECT_EQ(open_failure(request(), credential("forge", "Authorization: a\r\nX: b")),
            Reason::CredentialUnavailable);
}

TEST_F(ConnectorTest, RefusesAnUpstreamWithAnotherNamesCertificate) {
  EXPECT_EQ(open_failure(request(BodyKind::None, 0, "other.test")), Reason::UpstreamTls);
}

TEST_F(ConnectorTest, DirectGoesWithoutCredential) {
  answer_all(kOk);
  Direct direct(*connector);
  const auto opened = net::test::run(worker, direct.open(request()));
  ASSERT_TRUE(opened) << opened.error().detail;
  ASSERT_TRUE(net::test::run(worker, (*opened)->end_body()));
  EXPECT_EQ(net::test::run(worker, read_answer(**opened)).body, "ok");
  EXPECT_EQ(heads.at(0).find("uthorization"), std::string::npos);
}

TEST_F(ConnectorTest, ReusesAConnectionAfterACleanEnd) {
  answer_all(kOk);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(get().body, "ok");
  EXPECT_EQ(server.connections, 1);
  EXPECT_EQ(connector->pool().size(), 1U);
}

TEST_F(ConnectorTest, NeverReusesAConnectionWithoutACleanEnd) {
  const struct {
    const char* what;
    std::string_view answer;
  } cases[] = {
      {"Connection: close", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"},
      {"HTTP/1.0", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok"},
      {"bytes behind the answer", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n"},
      {"a body behind 204", "HTTP/1.1 204 No Content\r\n\r\nok"},
  };
  for (const auto& c : cases) {
    server.connections = 0;
    answer_all(c.answer);
    for (int i = 0; i < 2; ++i) {
      EXPECT_TRUE(get().head) << c.what;
    }
    EXPECT_EQ(server.connections, 2) << c.what;
    EXPECT_EQ(connector->pool().size(), 0U) << c.what;
  }
}

TEST_F(ConnectorTest, NeverReusesAConnectionWhoseRequestDidNotEnd) {
  answer_all(kOk);
  {
    const auto exchange = open(request(BodyKind::Declared, 10));
    ASSERT_TRUE(net::test::run(worker, exchange->send_body("half")));
    EXPECT_EQ(net::test::run(worker, read_answer(*exchange)).body, "ok");
  }
  EXPECT_EQ(connector->pool().size(), 0U);
}

TEST_F(ConnectorTest, NeverSharesAConnectionBetweenCredentials) {
  answer_all(kOk);
  EXPECT_EQ(get().body, "ok");
  EXPECT_EQ(get(credential("a", "Authorization: a")).body, "ok");
  EXPECT_EQ(get(credential("b", "Authorization: b")).body, "ok");
  EXPECT_EQ(server.connections, 3);
  EXPECT_EQ(connector->pool().size(), 3U);
  connector->drop_credential("a");
  EXPECT_EQ(connector->pool().size(), 2U);
}

TEST_F(ConnectorTest, AnIdleConnectionThatTheUpstreamClosedIsNotUsed) {
  server.serve = [this](net::Stream& stream, int) { return answer_once(stream, kOk, true); };
  EXPECT_EQ(get().body, "ok");
  net::test::run(worker, worker.sleep(milliseconds(1)));
  EXPECT_EQ(get().body, "ok");
  EXPECT_EQ(server.connections, 2);
}

TEST_F(ConnectorTest, ARequestWithoutBodyIsTriedOnceMoreWhenAReusedConnectionEnds) {
  server.serve = [this](net::Stream& stream, int connection) {
    return connection == 1 ? answer_one_and_hear_another(stream) : answer_once(stream, kOk, false);
  };
  EXPECT_EQ(get().body, "ok");
  EXPECT_EQ(get(Credential{}).body, "ok");
  EXPECT_EQ(server.connections, 2);
  EXPECT_EQ(heads.size(), 3U);
}

TEST_F(ConnectorTest, ARequestWithBodyIsNeverSentTwice) {
  server.serve = [this](net::Stream& stream, int) { return answer_one_and_hear_another(stream); };
  EXPECT_EQ(get().body, "ok");
  const auto exchange = open(request(BodyKind::Declared, 0));
  EXPECT_TRUE(net::test::run(worker, exchange->end_body()));
  const auto head = net::test::run(worker, exchange->read_head());
  ASSERT_FALSE(head);
  EXPECT_EQ(head.error().reason, Reason::UpstreamClosed);
  EXPECT_EQ(server.connections, 1);
}

TEST_F(ConnectorTest, AFreshConnectionIsNotTriedTwice) {
  server.serve = [](net::Stream& stream, int) -> Task<> { (void)co_await read_request_head(stream); };
  const auto answer = get();
  ASSERT_FALSE(answer.head);
  EXPECT_EQ(answer.head.error().reason, Reason::UpstreamClosed);
  EXPECT_EQ(server.connections, 1);
}

TEST_F(ConnectorTest, ADeclaredBodyIsCounted) {
  answer_all(kOk);
  auto exchange = open(request(BodyKind::Declared, 4));
  auto over = net::test::run(worker, exchange->send_body("GET /"));
  ASSERT_FALSE(over);
  EXPECT_EQ(over.error().reason, Reason::Internal);

  exchange = open(request(BodyKind::Declared, 4));
  ASSERT_TRUE(net::test::run(worker, exchange->send_body("abc")));
  const auto under = net::test::run(worker, exchange->end_body());
  ASSERT_FALSE(under);
  EXPECT_EQ(under.error().reason, Reason::Internal);

  exchange = open(request());
  EXPECT_FALSE(net::test::run(worker, exchange->send_body("a")));
}

TEST_F(ConnectorTest, TellsACutFromAnEnd) {
  const struct {
    const char* what;
    std::string_view answer;
    bool orderly;
    std::optional<Reason> end;
  } cases[] = {
      {"declared, cut", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok", true, Reason::UpstreamTruncated},
      {"declared, cut by FIN", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok", false,
       Reason::UpstreamTruncated},
      {"chunked, cut", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n", true,
       Reason::UpstreamTruncated},
      {"chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", false, {}},
      {"until close", "HTTP/1.1 200 OK\r\n\r\nok", true, {}},
      {"until close, without close_notify", "HTTP/1.1 200 OK\r\n\r\nok", false, Reason::UpstreamTruncated},
  };
  for (const auto& c : cases) {
    server.serve = [this, &c](net::Stream& stream, int) { return answer_once(stream, c.answer, c.orderly); };
    const Answer answer = get();
    ASSERT_TRUE(answer.head) << c.what;
    EXPECT_EQ(answer.body, "ok") << c.what;
    EXPECT_EQ(answer.end ? std::nullopt : std::optional(answer.end.error().reason), c.end) << c.what;
  }
  server.serve = [this](net::Stream& stream, int) { return answer_once(stream, "HTTP/1.1 200", true); };
  const Answer answer = get();
  ASSERT_FALSE(answer.head);
  EXPECT_EQ(answer.head.error().reason, Reason::UpstreamTruncated);
}

TEST_F(ConnectorTest, AMalformedAnswerFails) {
  answer_all("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x\r\nok\r\n0\r\n\r\n");
  const Answer body = get();
  ASSERT_TRUE(body.head);
  ASSERT_FALSE(body.end);
  EXPECT_EQ(body.end.error().reason, Reason::UpstreamMalformed);

  answer_all("SSH-2.0-OpenSSH_9.2\r\n");
  const Answer head = get();
  ASSERT_FALSE(head.head);
  EXPECT_EQ(head.head.error().reason, Reason::UpstreamMalformed);
  EXPECT_EQ(connector->pool().size(), 0U);
}

TEST_F(ConnectorTest, ASlowUpstreamTimesOut) {
  make_connector({.first_byte = milliseconds(1)});
  server.serve = [this](net::Stream& stream, int) { return answer_and_stay(stream, ""); };
  auto answer = get();
  ASSERT_FALSE(answer.head);
  EXPECT_EQ(answer.head.error().reason, Reason::UpstreamTimeout);

  make_connector({.idle = milliseconds(1)});
  server.serve = [this](net::Stream& stream, int) {
    return answer_and_stay(stream, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok");
  };
  answer = get();
  ASSERT_TRUE(answer.head);
  ASSERT_FALSE(answer.end);
  EXPECT_EQ(answer.end.error().reason, Reason::UpstreamTimeout);
}

TEST_F(ConnectorTest, AHeadThatDripsIsLimitedInAllAndNotFromByteToByte) {
  // Each byte, or each interim answer, comes in time; the head never ends.
  for (const std::string_view drop :
       {std::string_view("x"), std::string_view("HTTP/1.1 100 Continue\r\n\r\n")}) {
    make_connector({.first_byte = milliseconds(600), .idle = milliseconds(600)});
    server.serve = [this, drop](net::Stream& stream, int) { return drip(stream, drop); };
    const Answer after_body = get();
    ASSERT_FALSE(after_body.head);
    EXPECT_EQ(after_body.head.error().reason, Reason::UpstreamTimeout) << drop;
  }
  // Before the body's end: the body goes on and on, and does not keep it alive.
  server.serve = [this](net::Stream& stream, int) { return drip(stream, "x"); };
  const auto exchange = open(request(BodyKind::Open));
  bool over = false;
  worker.spawn("body", drip_body(*exchange, over));
  const auto head = net::test::run(worker, exchange->read_head());
  ASSERT_FALSE(head);
  EXPECT_EQ(head.error().reason, Reason::UpstreamTimeout);
  // NOLINTNEXTLINE(bugprone-infinite-loop): the coroutine ends it
  while (!over) net::test::run(worker, worker.sleep(milliseconds(1)));
}

TEST_F(ConnectorTest, AnUpstreamThatDoesNotReadHoldsTheSenderBack) {
  make_connector({.idle = milliseconds(1)});
  server.serve = [this](net::Stream&, int) { return worker.sleep(std::chrono::hours(1)); };
  const auto exchange = open(request(BodyKind::Open));
  std::uint64_t sent = 0;
  const Status end = net::test::run(worker, [](Exchange& e, std::uint64_t& count) -> Task<Status> {
    const std::string piece(64 * 1024, 'x');
    for (;;) {
      auto status = co_await e.send_body(piece);
      if (!status) co_return status;
      count += piece.size();
    }
  }(*exchange, sent));
  EXPECT_EQ(end.error().reason, Reason::UpstreamTimeout);
  EXPECT_LT(sent, 64U << 20) << "more than any socket buffer";
}

TEST_F(ConnectorTest, AnEarlyAnswerIsReadWhileTheBodyFlows) {
  answer_all("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
  const auto exchange = open(request(BodyKind::Open));
  ASSERT_TRUE(net::test::run(worker, exchange->send_body("the first part")));
  const Answer answer = net::test::run(worker, read_answer(*exchange));
  ASSERT_TRUE(answer.head) << answer.head.error().detail;
  EXPECT_EQ(answer.head->status, 403);
  EXPECT_EQ(answer.body, "no");
  EXPECT_TRUE(net::test::run(worker, exchange->send_body("goes on")));
}

TEST_F(ConnectorTest, AnAnswerIsReadThoughTheUpstreamReadNoMore) {
  static constexpr std::string_view kTooLarge = "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno";
  server.serve = [this](net::Stream& stream, int) { return answer_once(stream, kTooLarge, true); };
  const auto exchange = open(request(BodyKind::Open));
  const Status sent = net::test::run(worker, [](Exchange& e) -> Task<Status> {
    const std::string piece(64 * 1024, 'x');
    for (;;) {
      auto status = co_await e.send_body(piece);
      if (!status) co_return status;
    }
  }(*exchange));
  EXPECT_EQ(sent.error().reason, Reason::UpstreamClosed);
  const Answer answer = net::test::run(worker, read_answer(*exchange));
  ASSERT_TRUE(answer.head) << answer.head.error().detail;
  EXPECT_EQ(answer.head->status, 413);
  EXPECT_EQ(answer.body, "no");
}

TEST_F(ConnectorTest, AbortWakesWhoeverWaits) {
  server.serve = [this](net::Stream&, int) { return worker.sleep(std::chrono::hours(1)); };
  const auto exchange = open(request());
  worker.spawn("aborts", [](Exchange& e) -> Task<> {
    e.abort();
    co_return;
  }(*exchange));
  const auto head = net::test::run(worker, exchange->read_head());
  ASSERT_FALSE(head);
  EXPECT_EQ(head.error().reason, Reason::UpstreamClosed);
  EXPECT_EQ(server.connections, 1) << "an abort is no reason to try again";
}

// The first and, for what is taken, the only thing that such an upstream says; then a good request follows.
TEST_F(ConnectorTest, EachAnswerOfTheFileHasItsOutcomeAndItsConnectionServesNoOtherUnlessItIsWhole) {
  for (const AnswerCase& c : answers_file()) {
    make_connector({});
    heads.clear();
    server.connections = 0;
    server.serve = [this, &c](net::Stream& stream, int connection) {
      return connection == 1 ? answer_as(stream, c) : answer_each(stream, kOk);
    };
    const Answer answer = get(credential("forge", "Authorization: Basic eDp5"));
    const Status end = answer.head ? answer.end : fail(answer.head.error().reason, "");
    EXPECT_EQ(end ? Reason::None : end.error().reason, reason_of(c.expected)) << c.name;
    const bool cut = c.expected == Expected::CutMalformed || c.expected == Expected::CutTruncated;
    EXPECT_EQ(answer.head.has_value(), cut || end) << c.name;
    EXPECT_EQ(heads.size(), 1U) << c.name << ": the credential was sent again";
    EXPECT_EQ(get(credential("forge", "Authorization: Basic eDp5")).body, "ok") << c.name;
    EXPECT_EQ(server.connections, c.expected == Expected::Whole ? 1 : 2) << c.name;
  }
}

// ---- 100 MiB up and down at once ----

constexpr std::uint64_t kTransferBytes = 100ULL << 20;

char pattern(std::uint64_t position) {
  return static_cast<char>(position * 131 + position / 251);
}

// Sends the decoded body back, chunk by chunk, while it comes.
Task<> echo(net::Stream& stream) {
  (void)co_await read_request_head(stream);
  EXPECT_TRUE(co_await stream.write_all("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"));
  wire::ChunkedDecoder decoder(wire::ChunkedDecoder::Message::Request);
  std::vector<char> buffer(40'000);
  while (!decoder.finished()) {
    const auto got = co_await stream.read_some(buffer);
    EXPECT_TRUE(got && *got > 0);
    if (!got || *got == 0) co_return;
    std::string_view in(buffer.data(), *got);
    while (!in.empty() && !decoder.finished()) {
      const auto step = decoder.decode(in);
      EXPECT_TRUE(step);
      if (!step) co_return;
      in.remove_prefix(step->consumed);
      if (step->data.empty()) continue;
      std::array<char, 20> size{};
      const int digits = std::snprintf(size.data(), size.size(), "%zx\r\n", step->data.size());
      std::string chunk(size.data(), static_cast<std::size_t>(digits));
      chunk.append(step->data).append("\r\n");
      if (!co_await stream.write_all(chunk)) co_return;
    }
  }
  EXPECT_TRUE(co_await stream.write_all("0\r\n\r\n"));
  (void)co_await stream.wait_readable();  // until the client goes
}

Task<> upload(Exchange& exchange, net::Event& done) {
  std::string piece;
  for (std::uint64_t at = 0; at < kTransferBytes;) {
    piece.resize(std::min<std::uint64_t>(50'000, kTransferBytes - at));
    for (char& c : piece) c = pattern(at++);
    const auto sent = co_await exchange.send_body(piece);
    EXPECT_TRUE(sent);
    if (!sent) co_return;
  }
  EXPECT_TRUE(co_await exchange.end_body());
  done.set();
}

Task<std::uint64_t> download(Exchange& exchange) {
  EXPECT_TRUE(co_await exchange.read_head());
  std::vector<char> buffer(64 * 1024);
  std::uint64_t at = 0;
  for (;;) {
    const auto got = co_await exchange.read_body(buffer);
    EXPECT_TRUE(got);
    if (!got || *got == 0) co_return at;
    bool same = true;
    for (std::size_t i = 0; i < *got; ++i) same = same && buffer[i] == pattern(at + i);
    EXPECT_TRUE(same);
    at += *got;
  }
}

TEST_F(ConnectorTest, Streams100MiBBothWaysAtOnce) {
  server.serve = [](net::Stream& stream, int) { return echo(stream); };
  {
    const auto exchange = open(request(BodyKind::Open));
    net::Event uploaded(worker);
    worker.spawn("upload", upload(*exchange, uploaded));
    EXPECT_EQ(net::test::run(worker, download(*exchange)), kTransferBytes);
    net::test::run(worker, uploaded.wait());
  }
  EXPECT_EQ(connector->pool().size(), 1U);
}

}  // namespace
}  // namespace sallyport::upstream
