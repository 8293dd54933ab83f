// For tests: a connector, and the upstream that it reaches on loopback.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/event.h"
#include "net/test_support.h"
#include "upstream/answers_file_test.h"
#include "upstream/connector.h"

namespace sallyport::upstream::test {
using net::Task;
using std::chrono::milliseconds;

inline constexpr std::string_view kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

class NoResolver final : public net::Resolver {
 public:
  void use(const std::vector<policy::PinnedAddress>& /*servers*/) override {}
  Task<Result<std::vector<policy::IpAddress>>> resolve(policy::HostName host) override {
    co_return fail(Reason::UpstreamUnresolved, host.str());
  }
};

// Reads up to the end of a head; what comes behind it stays unread.
inline Task<std::string> read_request_head(net::Stream& stream) {
  std::string head;
  std::array<char, 1> byte{};
  while (!head.ends_with("\r\n\r\n")) {
    const auto got = co_await stream.read_some(byte);
    if (!got || *got == 0) break;
    head += byte[0];
  }
  co_return head;
}

struct Answer {
  Result<AnswerHead> head = fail(Reason::Internal, "not read");
  std::string body;
  Status end;  // how the body ended
};

inline Task<Answer> read_answer(Exchange& exchange) {
  Answer answer;
  answer.head = co_await exchange.read_head();
  if (!answer.head) co_return answer;
  std::array<char, 1000> buffer{};
  for (;;) {
    const auto got = co_await exchange.read_body(buffer);
    if (!got) answer.end = std::unexpected(got.error());
    if (!got || *got == 0) co_return answer;
    answer.body.append(buffer.data(), *got);
  }
}

class ConnectorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    net::test::ignore_sigpipe();
    make_connector({});
  }

  void make_connector(policy::Timeouts timeouts) {
    auto grant = std::make_shared<policy::Grant>();
    grant->timeouts = timeouts;
    policy::UpstreamHost forge;
    forge.address = policy::parse_pinned_address("127.0.0.1:" + std::to_string(server.port()));
    forge.ca_pem = server.ca_pem();
    grant->hosts.emplace(net::test::host("forge.test"), forge);
    grant->hosts.emplace(net::test::host("other.test"), forge);
    connector = Connector::make(worker, resolver, grant).value();
  }

  static Request request(BodyKind body = BodyKind::None, std::uint64_t bytes = 0,
                         const char* host = "forge.test") {
    const bool get = body == BodyKind::None;
    return {.request_id = {},
            .host = net::test::host(host),
            .method = get ? "GET" : "POST",
            .target = get ? "/acme/widget/info/refs?service=git-upload-pack" : "/acme/widget/git-upload-pack",
            .body = body,
            .body_bytes = bytes};
  }

  static Credential credential(const char* name, std::string_view line) {
    auto secret = Secret::with_capacity(line.size()).value();
    EXPECT_TRUE(secret.append(line));
    return {name, std::make_shared<const Secret>(std::move(secret))};
  }

  std::unique_ptr<Exchange> open(Request what, Credential with = {}) {
    auto opened = net::test::run(worker, connector->open(std::move(what), std::move(with)));
    EXPECT_TRUE(opened) << opened.error().detail;
    return std::move(*opened);
  }

  Reason open_failure(Request what, Credential with = {}) {
    const auto opened = net::test::run(worker, connector->open(std::move(what), std::move(with)));
    return opened ? Reason::None : opened.error().reason;
  }

  // One whole request without body, and its answer.
  Answer get(Credential with = {}) {
    const auto exchange = open(request(), std::move(with));
    EXPECT_TRUE(net::test::run(worker, exchange->end_body()));
    return net::test::run(worker, read_answer(*exchange));
  }

  // Answers every request with the same bytes.
  void answer_all(std::string_view bytes) {
    server.serve = [this, bytes](net::Stream& stream, int) { return answer_each(stream, bytes); };
  }
  Task<> answer_each(net::Stream& stream, std::string_view bytes) {
    for (;;) {
      std::string head = co_await read_request_head(stream);
      if (head.empty()) co_return;
      heads.push_back(std::move(head));
      if (!co_await stream.write_all(bytes)) co_return;
    }
  }
  // Answers the first request of a connection, and hangs up.
  Task<> answer_once(net::Stream& stream, std::string_view bytes, bool orderly) {
    heads.push_back(co_await read_request_head(stream));
    EXPECT_TRUE(co_await stream.write_all(bytes));
    if (orderly) {
      EXPECT_TRUE(co_await stream.shutdown_write());
    }
  }

  // Answers the first request of a connection; the second one crosses the hang-up.
  Task<> answer_one_and_hear_another(net::Stream& stream) {
    co_await answer_once(stream, kOk, false);
    heads.push_back(co_await read_request_head(stream));
  }
  // Sends these bytes for an answer, and no more until the client goes.
  Task<> answer_and_stay(net::Stream& stream, std::string_view bytes) {
    heads.push_back(co_await read_request_head(stream));
    EXPECT_TRUE(co_await stream.write_all(bytes));
    (void)co_await stream.wait_readable();
  }

  // A head that goes on in small pieces until the client has enough.
  Task<> drip(net::Stream& stream, std::string_view drop) {
    (void)co_await read_request_head(stream);
    if (drop == "x") (void)co_await stream.write_all("HTTP/1.1 200 OK\r\nX: ");
    while (co_await stream.write_all(drop)) co_await worker.sleep(milliseconds(150));
  }
  Task<> drip_body(Exchange& exchange, bool& over) {
    while (co_await exchange.send_body("x")) co_await worker.sleep(milliseconds(20));
    over = true;
  }

  // As the file of answers says, and then politely.
  Task<> answer_as(net::Stream& stream, const AnswerCase& c) {
    heads.push_back(co_await read_request_head(stream));
    (void)co_await stream.write_all(c.bytes);
    if (c.end == PeerEnd::Close) (void)co_await stream.shutdown_write();
    if (c.end == PeerEnd::Stay) co_await answer_each(stream, kOk);
  }

  net::Worker worker;
  net::test::TlsServer server{worker};
  NoResolver resolver;
  std::unique_ptr<Connector> connector;
  std::vector<std::string> heads;
};

}  // namespace sallyport::upstream::test
