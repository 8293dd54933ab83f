// A session's limits at every entry: at the limit passes, one more is refused with one line and opens
// nothing, and afterwards there is room again.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "egress/test_client.h"
#include "egress/test_hello.h"
#include "gate/fake_front.h"
#include "gate/front_fixture.h"

namespace sallyport::gate {
namespace {

using testing::endpoint;
using testing::FrontTest;
using testing::kElsewhere;
using testing::receive_all;
using testing::send_text;

constexpr Rate kTwoADay{.amount = 1, .per = std::chrono::hours(24), .burst = 2};
constexpr std::string_view kFetch =
    "GET /acme/widget/info/refs?service=git-upload-pack HTTP/1.1\r\nHost: forge.test\r\n\r\n";

// ---- requests of a connection ----

TEST(RequestLimits, RefuseWhatComesFasterAndGoOnWithTheConnection) {
  policy::Grant grant = testing::forge_grant();
  grant.limits.requests = kTwoADay;
  forward::Usage usage(grant.limits);
  for (int i = 0; i < 2; ++i) {
    const auto verdict = testing::serve_bytes({std::string(kFetch)}, grant, testing::under_tls(), usage);
    EXPECT_EQ(verdict.lines, (std::vector<std::string>{"begin", "end upstream_not_found"}));
    EXPECT_EQ(verdict.sent.size(), 1U);
  }
  const auto verdict =
      testing::serve_bytes({std::string(kFetch) + std::string(kFetch)}, grant, testing::under_tls(), usage);
  EXPECT_EQ(verdict.lines, (std::vector<std::string>{"refused too_many", "refused too_many"}));
  EXPECT_TRUE(verdict.sent.empty());
  EXPECT_TRUE(verdict.answer.starts_with("HTTP/1.1 429 Too Many Requests\r\n")) << verdict.answer;
  EXPECT_NE(verdict.answer.find("Retry-After: 60\r\n"), std::string::npos) << verdict.answer;
  EXPECT_NE(verdict.answer.find(info(Reason::TooMany).sentence), std::string::npos);
  EXPECT_EQ(verdict.answers(), 2U);

  EXPECT_EQ(testing::serve_bytes({std::string(kFetch)}, grant).lines.front(), "begin") << "another session";
}

TEST(RequestLimits, RefuseOneMoreAtWorkForAHostThanTheLimit) {
  policy::Grant grant = testing::forge_grant();
  grant.limits.requests_per_host = 2;
  forward::Usage usage(grant.limits);
  auto first = usage.requests_to.take(*policy::HostName::parse("forge.test"));
  EXPECT_EQ(testing::serve_bytes({std::string(kFetch)}, grant, testing::under_tls(), usage).lines.front(),
            "begin");
  auto second = usage.requests_to.take(*policy::HostName::parse("forge.test"));
  const auto verdict = testing::serve_bytes({std::string(kFetch)}, grant, testing::under_tls(), usage);
  EXPECT_EQ(verdict.lines, (std::vector<std::string>{"refused too_many"}));
  EXPECT_NE(verdict.answer.find("Retry-After: 1\r\n"), std::string::npos) << verdict.answer;
  EXPECT_TRUE(verdict.sent.empty());
  second.reset();
  EXPECT_EQ(testing::serve_bytes({std::string(kFetch)}, grant, testing::under_tls(), usage).lines.front(),
            "begin");
}

TEST(RequestLimits, TellWhenTheNextOneMayCome) {
  policy::Grant grant = testing::forge_grant();
  grant.limits.requests = Rate{.amount = 1, .per = std::chrono::seconds(10), .burst = 1};
  forward::Usage usage(grant.limits);
  const auto now = net::Clock::now() + std::chrono::hours(1);  // the bucket knows no earlier time
  EXPECT_TRUE(usage.requests.take(now));
  const auto verdict = testing::serve_bytes({std::string(kFetch)}, grant, testing::under_tls(), usage);
  EXPECT_NE(verdict.answer.find("Retry-After: 10\r\n"), std::string::npos) << verdict.answer;
}

TEST(RequestLimits, EndAConnectionWhoseBodyIsStillToCome) {
  policy::Grant grant = testing::forge_grant();
  grant.limits.requests = Rate{.amount = 1, .per = std::chrono::hours(24), .burst = 1};
  forward::Usage usage(grant.limits);
  EXPECT_TRUE(usage.requests.take(net::Clock::now()));
  const auto verdict =
      testing::serve_bytes({"POST /acme/widget/git-upload-pack HTTP/1.1\r\nHost: forge.test\r\n"
                            "Content-Type: application/x-git-upload-pack-request\r\n"
                            "Content-Length: 4\r\n\r\n0000" +
                            std::string(kFetch)},
                           grant, testing::under_tls(), usage);
  EXPECT_EQ(verdict.lines, (std::vector<std::string>{"refused too_many"}));
  EXPECT_EQ(verdict.answers(), 1U);
}

// ---- connections ----

policy::Grant narrow_grant() {
  policy::Grant grant = testing::test_grant();
  grant.limits.requests = kTwoADay;
  grant.limits.tunnels_per_host = 1;
  grant.limits.pending_connects = 1;
  grant.limits.upload = kTwoADay;
  grant.limits.download = kTwoADay;
  return grant;
}

class ConnectionLimits : public FrontTest {
 protected:
  ConnectionLimits() : FrontTest(narrow_grant()) {
    // Nobody answers there; whoever is dialled leaves two lines and not one.
    policy::UpstreamHost nobody;
    nobody.address = policy::parse_pinned_address("127.0.0.1:1");
    for (const policy::HostName& host : {database_, pinned_}) grant_.hosts[host] = nobody;
  }

  void spend_requests() {
    while (usage_.requests.take(net::Clock::now())) {
    }
  }
  std::string answer_to(const os::Endpoint& destination, std::string_view bytes) {
    std::string answer;
    serve(destination, [&](int socket) {
      send_text(socket, bytes);
      answer = receive_all(socket).bytes;
    });
    return answer;
  }
  os::Endpoint database() { return endpoint(addresses_.address_of(database_).str().c_str(), 5432); }
  void expect_dialled() {
    ASSERT_EQ(recorder_.events.size(), 2U);
    EXPECT_EQ(recorder_.events[0].kind, audit::Kind::Begin);
    EXPECT_EQ(recorder_.events[1].reason, Reason::UpstreamUnreachable);
    recorder_.events.clear();
  }

  const os::Endpoint proxy_ = endpoint("198.18.0.1", 3128);
  const policy::HostName database_ = *policy::HostName::parse("db.ok.test");
  const policy::HostName pinned_ = *policy::HostName::parse("pin.test.test");
};

TEST_F(ConnectionLimits, CountATunnelAsARequest) {
  for (int i = 0; i < 2; ++i) {
    answer_to(database(), "");
    expect_dialled();
  }
  answer_to(database(), "");
  expect_only(Reason::TooMany, "db.ok.test");
}

TEST_F(ConnectionLimits, CountSplicedTlsAsARequestAndRefuseItByAnAlert) {
  using namespace egress::test;
  spend_requests();
  const std::string hello = record(message(hello_body(sni("pin.test.test") + versions({0x0304}))));
  EXPECT_EQ(answer_to(endpoint(kElsewhere, 443), hello), std::string("\x15\x03\x03\0\x02\x02\x50", 7));
  expect_only(Reason::TooMany, "pin.test.test");
}

TEST_F(ConnectionLimits, CountARefusedNameUnderTlsAsARequestAndThenSendAnAlert) {
  const auto alert_to = [&](const char* name) {
    int alert = 0;
    serve(endpoint(kElsewhere, 443), [&](int socket) {
      egress::TestClient client(socket, {.sni = name});
      if (!client.connect()) alert = client.alert();
      client.end();
    });
    expect_only(Reason::HostNotAllowed, name);
    return alert;
  };
  EXPECT_EQ(alert_to("a.evil.test"), 0);
  EXPECT_EQ(alert_to("b.evil.test"), 0);
  EXPECT_EQ(alert_to("c.evil.test"), SSL_AD_UNRECOGNIZED_NAME);
}

TEST_F(ConnectionLimits, CountAConnectAsARequestAndItsTunnelNoMore) {
  answer_to(proxy_, "CONNECT db.ok.test:5432 HTTP/1.1\r\n\r\n");
  expect_dialled();
  EXPECT_TRUE(usage_.requests.take(net::Clock::now()));
  const std::string answer = answer_to(proxy_, "CONNECT db.ok.test:5432 HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 429 ")) << answer;
  EXPECT_NE(answer.find("Retry-After: 60\r\n"), std::string::npos) << answer;
  expect_only(Reason::TooMany, "db.ok.test");
}

TEST_F(ConnectionLimits, CountWhatIsJudgedBehindAConnectAndNotTheConnect) {
  for (int i = 0; i < 2; ++i) {
    const std::string answer = answer_to(
        proxy_,
        "CONNECT plain.ok.test:80 HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\nHost: plain.ok.test\r\nConnection: "
        "close\r\n\r\n");
    EXPECT_NE(answer.find("HTTP/1.1 502 "), std::string::npos) << answer;
    ASSERT_EQ(recorder_.events.size(), 2U);
    recorder_.events.clear();
    direct_.opened = 0;
  }
  serve(proxy_, [](int socket) {
    send_text(socket, "CONNECT api.ok.test:443 HTTP/1.1\r\n\r\n");
    std::string established(39, '\0');
    ASSERT_EQ(::recv(socket, established.data(), established.size(), MSG_WAITALL), 39);
    EXPECT_EQ(established, "HTTP/1.1 200 Connection established\r\n\r\n");
    egress::TestClient client(socket, {});
    ASSERT_TRUE(client.connect());
    client.write("GET / HTTP/1.1\r\nHost: api.ok.test\r\nConnection: close\r\n\r\n");
    EXPECT_TRUE(client.read_all().starts_with("HTTP/1.1 429 "));
  });
  expect_only(Reason::TooMany, "api.ok.test");
}

TEST_F(ConnectionLimits, CountAConnectThatIsRefused) {
  for (const char* status : {"403", "403", "429"}) {
    const std::string answer = answer_to(proxy_, "CONNECT evil.test:443 HTTP/1.1\r\n\r\n");
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 " + std::string(status) + " ")) << answer;
    recorder_.events.clear();
  }
}

TEST_F(ConnectionLimits, CountRequestsInAbsoluteForm) {
  spend_requests();
  serve(proxy_, [&](int socket) {
    send_text(socket, "GET http://plain.ok.test/ HTTP/1.1\r\nHost: plain.ok.test\r\n\r\n");
    ::shutdown(socket, SHUT_WR);
    EXPECT_TRUE(receive_all(socket).bytes.starts_with("HTTP/1.1 429 "));
  });
  expect_only(Reason::TooMany, "plain.ok.test");
}

TEST_F(ConnectionLimits, CountRequestsInTheClear) {
  spend_requests();
  serve(endpoint(kElsewhere, 80), [&](int socket) {
    send_text(socket, "GET / HTTP/1.1\r\nHost: plain.ok.test\r\n\r\n");
    ::shutdown(socket, SHUT_WR);
    EXPECT_TRUE(receive_all(socket).bytes.starts_with("HTTP/1.1 429 "));
  });
  expect_only(Reason::TooMany, "plain.ok.test");
}

TEST_F(ConnectionLimits, RefuseOneMoreTunnelToAHost) {
  auto other = usage_.tunnels_to.take(pinned_);
  answer_to(database(), "");
  expect_dialled();
  auto held = usage_.tunnels_to.take(database_);
  answer_to(database(), "");
  expect_only(Reason::TooMany, "db.ok.test");
}

TEST_F(ConnectionLimits, RefuseATunnelWhenTooManyConnectionsAreBeingMade) {
  auto held = usage_.connects.take();
  answer_to(database(), "");
  expect_only(Reason::Overloaded, "db.ok.test");
  held.reset();
  answer_to(database(), "");
  expect_dialled();
}

TEST_F(ConnectionLimits, RefuseATunnelWhenABudgetIsSpent) {
  EXPECT_TRUE(usage_.upload.spend(net::Clock::now(), 2));
  answer_to(database(), "");
  expect_only(Reason::TooMany, "db.ok.test");
}

}  // namespace
}  // namespace sallyport::gate
