// Connections that are passed on as they are, and the explicit proxy.

#include <fcntl.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "egress/test_hello.h"
#include "gate/front_fixture.h"

namespace sallyport::gate {
namespace {

using testing::endpoint;
using testing::FrontTest;
using testing::kElsewhere;
using testing::receive_all;
using testing::send_text;

// ---- connections that are passed on ----

// The upstream of pin.test and of db.test: sees what comes, and says something.
class Passed : public FrontTest {
 protected:
  // What the upstream receives until the client is done sending, and then its answer for the client.
  std::string upstream_sees(std::optional<os::Endpoint> destination, std::string_view sent) {
    std::string seen;
    std::thread upstream([&] {
      const Fd accepted(::accept4(upstream_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      testing::bound_waiting(accepted.get());
      seen = receive_all(accepted.get()).bytes;
      send_text(accepted.get(), "answer");
    });
    std::string answer;
    serve(std::move(destination), [&](int socket) {
      send_text(socket, sent);
      ::shutdown(socket, SHUT_WR);
      answer = receive_all(socket).bytes;
    });
    upstream.join();
    EXPECT_TRUE(answer.ends_with("answer")) << answer;
    return seen;
  }
  void expect_carried(audit::Entry entry, std::string_view scheme, std::string_view host, std::size_t bytes) {
    ASSERT_EQ(recorder_.events.size(), 2U);
    const audit::Event& begin = recorder_.events[0];
    EXPECT_EQ(begin.kind, audit::Kind::Begin);
    EXPECT_EQ(begin.entry, entry);
    EXPECT_EQ(begin.scheme, scheme);
    EXPECT_EQ(begin.host, host);
    EXPECT_EQ(begin.rule, "sallyport.toml:7");
    const audit::Event& end = recorder_.events[1];
    EXPECT_EQ(end.request, begin.request);
    EXPECT_EQ(end.reason, Reason::None) << end.detail;
    EXPECT_EQ(end.bytes_in, bytes);
    EXPECT_EQ(end.bytes_out, 6U);
    recorder_.events.clear();
  }
  void SetUp() override {
    const int blocking = ::fcntl(upstream_.get(), F_GETFL) & ~O_NONBLOCK;
    ASSERT_EQ(::fcntl(upstream_.get(), F_SETFL, blocking), 0);
    policy::UpstreamHost here;
    here.address = policy::parse_pinned_address(testing::bound_address(upstream_.get()).text());
    grant_.hosts[*policy::HostName::parse("pin.test.test")] = here;
    grant_.hosts[*policy::HostName::parse("db.ok.test")] = here;
  }

  static std::string hello(std::string_view name, const std::string& more = "") {
    using namespace egress::test;
    return record(message(hello_body(sni(name) + versions({0x0304}) + more)));
  }

  Fd upstream_ = testing::loopback_socket(SOCK_STREAM);
};

TEST_F(Passed, SplicedTlsGoesAsItIs) {
  const std::string sent = hello("pin.test.test") + "whatever follows";
  EXPECT_EQ(upstream_sees(endpoint(kElsewhere, 443), sent), sent);
  expect_carried(audit::Entry::Tls, "https", "pin.test.test", sent.size());
}

TEST_F(Passed, ATcpRulesPortIsOpenWhateverIsSpoken) {
  const auto address = addresses_.address_of(*policy::HostName::parse("db.ok.test"));
  EXPECT_EQ(upstream_sees(endpoint(address.str().c_str(), 5432), "SSH-2.0-x"), "SSH-2.0-x");
  expect_carried(audit::Entry::Tcp, "tcp", "db.ok.test", 9);
}

TEST_F(Passed, AnEncryptedNameIsRefusedWhereNobodyLooksInside) {
  serve(endpoint(kElsewhere, 443), [&](int socket) {
    send_text(socket, hello("pin.test.test", egress::test::extension(0xfe0d, "x")));
    receive_all(socket);
  });
  expect_only(Reason::EchRefused, "pin.test.test");
}

// ---- the explicit proxy ----

TEST_F(Passed, AConnectLeadsWhereTheOtherWaysLead) {
  const auto proxy = endpoint("198.18.0.1", 3128);
  const std::string sent = hello("pin.test.test") + "more";
  EXPECT_EQ(
      upstream_sees(proxy, "CONNECT pin.test.test:443 HTTP/1.1\r\nHost: pin.test.test:443\r\n\r\n" + sent),
      sent);
  expect_carried(audit::Entry::Proxy, "https", "pin.test.test", sent.size());
  EXPECT_EQ(upstream_sees(proxy, "CONNECT db.ok.test:5432 HTTP/1.1\r\n\r\nhello"), "hello");
  expect_carried(audit::Entry::Proxy, "tcp", "db.ok.test", 5);
}

TEST_F(Passed, AConnectIsRefusedInWords) {
  struct Case {
    std::string_view target;
    std::string_view status;
    Reason reason;
  };
  for (const Case& test : std::vector<Case>{{"evil.test:443", "403", Reason::HostNotAllowed},
                                            {"db.ok.test:22", "403", Reason::PortNotAllowed},
                                            {"api.ok.test:80", "403", Reason::PlainHttp}}) {
    SCOPED_TRACE(test.target);
    std::string answer;
    serve(endpoint("198.18.0.1", 3128), [&](int socket) {
      send_text(socket, "CONNECT " + std::string(test.target) + " HTTP/1.1\r\n\r\n");
      answer = receive_all(socket).bytes;
    });
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 " + std::string(test.status) + " ")) << answer;
    EXPECT_NE(answer.find(info(test.reason).sentence), std::string::npos) << answer;
    ASSERT_EQ(recorder_.events.size(), 1U);
    EXPECT_EQ(recorder_.events[0].entry, audit::Entry::Proxy);
    expect_only(test.reason, test.target.substr(0, test.target.find(':')));
  }
}

TEST_F(Passed, WhatComesInATunnelMustNameItsHost) {
  serve(endpoint("198.18.0.1", 3128), [&](int socket) {
    send_text(socket, "CONNECT api.ok.test:443 HTTP/1.1\r\n\r\n" + hello("pin.test.test"));
    receive_all(socket);
  });
  expect_only(Reason::SniMismatch, "pin.test.test");
}

TEST_F(Passed, AbsoluteFormIsJudgedRequestByRequest) {
  std::string answer;
  serve(endpoint("198.18.0.1", 3128), [&](int socket) {
    send_text(socket,
              "GET http://plain.ok.test/x HTTP/1.1\r\nHost: plain.ok.test\r\n\r\n"
              "GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n"
              "GET / HTTP/1.1\r\nHost: plain.ok.test\r\n\r\n");
    ::shutdown(socket, SHUT_WR);
    answer = receive_all(socket).bytes;
  });
  ASSERT_EQ(recorder_.events.size(), 4U);
  EXPECT_EQ(recorder_.events[0].kind, audit::Kind::Begin);
  EXPECT_EQ(recorder_.events[0].entry, audit::Entry::Proxy);
  EXPECT_EQ(recorder_.events[0].host, "plain.ok.test");
  EXPECT_EQ(recorder_.events[2].reason, Reason::HostNotAllowed);
  EXPECT_EQ(recorder_.events[3].reason, Reason::ProxyForm);
  EXPECT_EQ(direct_.opened, 1);
}

}  // namespace
}  // namespace sallyport::gate
