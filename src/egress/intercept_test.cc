#include "egress/intercept.h"

#include <gtest/gtest.h>
#include <openssl/x509.h>

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "egress/test_client.h"

namespace sallyport::egress {
namespace {

using namespace std::string_literals;
using Outcome = std::expected<Intercepted, HandshakeRefusal>;

constexpr int kAlertProtocolVersion = 70;
constexpr int kAlertUnrecognizedName = 112;
constexpr int kAlertNoApplicationProtocol = 120;

// One handshake: the interceptor on this thread, `client` on another with its end of the connection.
class Intercept : public ::testing::Test {
 protected:
  Outcome handshake(const std::function<void(int socket)>& client) {
    auto [server_end, client_end] = test_sockets();
    std::optional<Outcome> outcome;
    worker_.spawn("test", accept(std::move(server_end), outcome));
    std::thread thread([&] { client(client_end.get()); });
    worker_.run();
    // The server's end goes with a refused handshake only; a client that waits for more goes with this.
    ::shutdown(client_end.get(), SHUT_RD);
    thread.join();
    return *std::move(outcome);
  }
  Outcome handshake(const TestClient::Options& options) {
    return handshake([&](int socket) {
      TestClient client(socket, options);
      connected_ = client.connect();
      alert_ = client.alert();
      const unsigned char* name = nullptr;
      unsigned size = 0;
      SSL_get0_alpn_selected(client.ssl(), &name, &size);
      alpn_.assign(reinterpret_cast<const char*>(name), size);
    });
  }

  net::Worker worker_;
  net::KeyPair ca_ = *net::make_session_ca("0123456789abcdef");
  std::unique_ptr<Interceptor> interceptor_ = *Interceptor::make(
      worker_,
      *net::key_pair_from_pem(*net::certificate_pem(*ca_.certificate), *net::private_key_pem(*ca_.key)));
  std::vector<std::string> judged_;
  net::Task<> (*afterwards_)(net::Stream& stream) = nullptr;  // on a handshake that was accepted
  bool connected_ = false;
  int alert_ = 0;
  std::string alpn_;

 private:
  net::Task<> accept(Fd socket, std::optional<Outcome>& outcome) {
    outcome.emplace(co_await take(std::move(socket)));
    if (afterwards_ != nullptr && *outcome) co_await afterwards_(*(*outcome)->stream);
    worker_.stop();
  }

  net::Task<Outcome> take(Fd socket) {
    const auto judge = [this](const policy::HostName& host) {
      judged_.push_back(host.str());
      return host.str() == "api.ok.test" ? Status() : fail(Reason::HostNotAllowed, "");
    };
    auto peeked = co_await peek_hello(worker_, std::move(socket));
    if (!peeked) co_return std::unexpected(std::move(peeked).error());
    co_return co_await interceptor_->accept(*std::move(peeked), judge);
  }
};

TEST_F(Intercept, AllowedNameIsServedUnderTheSessionsAuthority) {
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    const Outcome outcome = handshake({.max_version = version, .authority = ca_.certificate.get()});
    ASSERT_TRUE(outcome) << outcome.error().error.detail;
    EXPECT_EQ(outcome->host.str(), "api.ok.test");
    EXPECT_NE(outcome->stream, nullptr);
    EXPECT_TRUE(connected_);
  }
  EXPECT_EQ(judged_, (std::vector<std::string>{"api.ok.test", "api.ok.test"}));
}

TEST_F(Intercept, TellsAClientThatDoesNotTakeItsCertificate) {
  const auto other = *net::make_session_ca("0123456789abcdef");
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    const Outcome outcome = handshake({.max_version = version, .authority = other.certificate.get()});
    ASSERT_FALSE(outcome);
    EXPECT_FALSE(connected_);
    EXPECT_EQ(code(outcome.error().error.reason), "tls_pinned") << outcome.error().error.detail;
    EXPECT_EQ(outcome.error().host, "api.ok.test");
  }
}

TEST_F(Intercept, TakesUpperCaseForTheSameName) {
  const Outcome outcome = handshake({.sni = "API.OK.Test", .authority = ca_.certificate.get()});
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->host.str(), "api.ok.test");
}

TEST_F(Intercept, RefusedNameSeesUnrecognizedNameAndKeepsTheJudgesReason) {
  const Outcome outcome = handshake({.sni = "evil.test"});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().error.reason, Reason::HostNotAllowed);
  EXPECT_EQ(outcome.error().host, "evil.test");
  EXPECT_FALSE(connected_);
  EXPECT_EQ(alert_, kAlertUnrecognizedName);
}

TEST_F(Intercept, RefusesANameThatIsNoHostWithoutAskingTheJudge) {
  struct Case {
    std::string sni;
    Reason reason;
  };
  const std::vector<Case> cases{
      {"", Reason::NoSni},
      {"api.ok.test:443", Reason::BadRequest},
      {"api.ok.test..", Reason::BadRequest},
      {"api ok.test", Reason::BadRequest},
      {"*.ok.test", Reason::BadRequest},
      {"localhost", Reason::BadRequest},
      {"127.1", Reason::IpLiteral},
      {"2130706433", Reason::IpLiteral},
  };
  for (const auto& test : cases) {
    const Outcome outcome = handshake({.sni = test.sni});
    ASSERT_FALSE(outcome) << test.sni;
    EXPECT_EQ(outcome.error().error.reason, test.reason) << test.sni;
    EXPECT_EQ(alert_, kAlertUnrecognizedName) << test.sni;
  }
  EXPECT_TRUE(judged_.empty());
}

TEST_F(Intercept, SpeaksHttp11AndNothingElse) {
  const Outcome both = handshake({.alpn = "\x02h2\x08http/1.1"});
  ASSERT_TRUE(both);
  EXPECT_EQ(alpn_, "http/1.1");

  const Outcome h2_only = handshake({.alpn = "\x02h2"});
  ASSERT_FALSE(h2_only);
  EXPECT_EQ(h2_only.error().error.reason, Reason::BadRequest);
  EXPECT_EQ(h2_only.error().host, "api.ok.test");
  EXPECT_EQ(alert_, kAlertNoApplicationProtocol);

  EXPECT_TRUE(handshake({.alpn = ""}));
  EXPECT_EQ(alpn_, "");
}

TEST_F(Intercept, RefusesTls10And11) {
  for (const int version : {TLS1_VERSION, TLS1_1_VERSION}) {
    const Outcome outcome = handshake({.min_version = TLS1_VERSION, .max_version = version});
    ASSERT_FALSE(outcome) << version;
    EXPECT_EQ(outcome.error().error.reason, Reason::NotTls) << version;
    EXPECT_EQ(alert_, kAlertProtocolVersion) << version;
  }
}

TEST_F(Intercept, RefusesToRenegotiateUnderAnotherName) {
  afterwards_ = [](net::Stream& stream) -> net::Task<> {
    std::array<char, 64> bytes{};
    EXPECT_FALSE(co_await stream.read_some(bytes)) << "the client ends a connection that stays as it was";
  };
  bool renegotiated = true;
  const Outcome outcome = handshake([&](int socket) {
    TestClient client(socket, {.max_version = TLS1_2_VERSION});
    connected_ = client.connect();
    SSL_set_tlsext_host_name(client.ssl(), "evil.test");
    renegotiated = SSL_renegotiate(client.ssl()) != 1 || SSL_do_handshake(client.ssl()) == 1;
  });
  ASSERT_TRUE(outcome);
  EXPECT_TRUE(connected_);
  EXPECT_FALSE(renegotiated);
  EXPECT_EQ(judged_, std::vector<std::string>{"api.ok.test"});
}

TEST_F(Intercept, JudgesTheSecondHelloAfterARetryToo) {
  // The first key share is of a group that is not ours, so the server asks for another.
  const Outcome outcome = handshake({.groups = "ffdhe8192:P-256"});
  ASSERT_TRUE(outcome) << outcome.error().error.detail;
  EXPECT_EQ(judged_, (std::vector<std::string>{"api.ok.test", "api.ok.test"}));
}

TEST_F(Intercept, ResumesNothing) {
  EXPECT_TRUE(handshake([&](int socket) {
    TestClient client(socket, {.max_version = TLS1_2_VERSION});
    connected_ = client.connect();
    EXPECT_EQ(SSL_SESSION_has_ticket(SSL_get_session(client.ssl())), 0);
    unsigned id_bytes = 0;
    SSL_SESSION_get_id(SSL_get_session(client.ssl()), &id_bytes);
    EXPECT_EQ(id_bytes, 0U);
  }));
  EXPECT_TRUE(connected_);
}

// ---- ClientHellos in pieces, and things that are none ----

void send_all(int socket, std::string_view bytes) {
  // The other side may have gone already.
  static_cast<void>(::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL));
}
std::string received(int socket) {
  std::string all;
  char buffer[4096];
  for (ssize_t got; (got = ::recv(socket, buffer, sizeof buffer, 0)) > 0;) {
    all.append(buffer, static_cast<std::size_t>(got));
  }
  return all;
}
std::string in_records_of(std::string_view record, std::size_t size) {
  constexpr std::size_t kHead = 5;
  const std::string_view head = record.substr(0, 3);
  std::string out;
  for (std::size_t at = kHead; at < record.size(); at += size) {
    const auto piece = record.substr(at, size);
    out += head;
    out += static_cast<char>(piece.size() >> 8U);
    out += static_cast<char>(piece.size() & 0xFFU);
    out += piece;
  }
  return out;
}

TEST_F(Intercept, ReadsAClientHelloHoweverItIsCut) {
  for (const std::string sni : {"api.ok.test", "evil.test"}) {
    const std::string hello = client_hello_bytes({.sni = sni});
    ASSERT_GT(hello.size(), 100U);
    for (const bool many_records : {false, true}) {
      judged_.clear();
      const std::string bytes = many_records ? in_records_of(hello, 1) : hello;
      const Outcome outcome = handshake([&](int socket) {
        for (const char byte : bytes) send_all(socket, {&byte, 1});
        ::shutdown(socket, SHUT_WR);
        received(socket);
      });
      // The client says no more than its hello, so an allowed handshake ends by its leaving.
      ASSERT_FALSE(outcome);
      EXPECT_EQ(outcome.error().host, sni);
      EXPECT_EQ(code(outcome.error().error.reason),
                code(sni == "evil.test" ? Reason::HostNotAllowed : Reason::ClientClosed));
      EXPECT_EQ(judged_, std::vector<std::string>{sni});
    }
  }
}

std::string hello_of(std::size_t body_bytes) {
  std::string message = "\x01"s;
  message += static_cast<char>(body_bytes >> 16U);
  message += static_cast<char>(body_bytes >> 8U & 0xFFU);
  message += static_cast<char>(body_bytes & 0xFFU);
  message += "\x03\x03" + std::string(body_bytes - 2, '\0');
  return in_records_of("\x16\x03\x01\0\0"s + message, 4096);
}

TEST_F(Intercept, StopsReadingAHelloPastItsLimit) {
  const Outcome outcome = handshake([&](int socket) {
    send_all(socket, hello_of(std::size_t{64} * 1024));
    received(socket);
  });
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().error.reason, Reason::TooLarge);
  EXPECT_TRUE(judged_.empty());
}

TEST_F(Intercept, RefusesWhatIsNotTls) {
  struct Case {
    std::string_view what;
    std::string bytes;
    Reason reason;
  };
  const std::vector<Case> cases{
      {"SSH", "SSH-2.0-OpenSSH_9.2\r\n", Reason::NotTls},
      {"HTTP", "GET / HTTP/1.1\r\nHost: api.ok.test\r\n\r\n", Reason::NotTls},
      {"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Reason::NotTls},
      {"zeros", std::string(64, '\0'), Reason::NotTls},
      {"a record of data",
       "\x17\x03\x03\0\x04"
       "data"s,
       Reason::NotTls},
      {"an alert", "\x15\x03\x03\0\x02\x02\x28"s, Reason::NotTls},
      {"a record longer than any", "\x16\x03\x01\xff\xff"s + std::string(100, 'x'), Reason::TooLarge},
      // OpenSSL would take SSLv2's ClientHello, which has no place for a name.
      {"SSLv2", "\x80\x2e\x01\x03\x03\0\x15\0\0\0\x10"s + std::string(37, '\x07'), Reason::NotTls},
  };
  for (const auto& test : cases) {
    const Outcome outcome = handshake([&](int socket) {
      send_all(socket, test.bytes);
      ::shutdown(socket, SHUT_WR);
      received(socket);
    });
    ASSERT_FALSE(outcome) << test.what;
    EXPECT_EQ(code(outcome.error().error.reason), code(test.reason))
        << test.what << ": " << outcome.error().error.detail;
  }
  EXPECT_TRUE(judged_.empty());
}

TEST_F(Intercept, KnowsWhichAlertsAreAboutItsCertificate) {
  const std::vector<std::pair<int, const char*>> alerts{
      {SSL_AD_BAD_CERTIFICATE, "tls_pinned"},     {SSL_AD_UNSUPPORTED_CERTIFICATE, "tls_pinned"},
      {SSL_AD_CERTIFICATE_REVOKED, "tls_pinned"}, {SSL_AD_CERTIFICATE_EXPIRED, "tls_pinned"},
      {SSL_AD_CERTIFICATE_UNKNOWN, "tls_pinned"}, {SSL_AD_UNKNOWN_CA, "tls_pinned"},
      {SSL_AD_HANDSHAKE_FAILURE, "not_tls"},      {SSL_AD_ILLEGAL_PARAMETER, "not_tls"},
      {SSL_AD_INTERNAL_ERROR, "not_tls"},
  };
  for (const auto& test : alerts) {
    const Outcome outcome = handshake([alert = test.first](int socket) {
      send_all(socket, client_hello_bytes({.max_version = TLS1_2_VERSION}));
      char first = 0;
      ASSERT_EQ(::recv(socket, &first, 1, 0), 1);
      send_all(socket, "\x15\x03\x03\0\x02\x02"s + static_cast<char>(alert));
      received(socket);
    });
    ASSERT_FALSE(outcome) << test.first;
    EXPECT_EQ(code(outcome.error().error.reason), test.second) << test.first << outcome.error().error.detail;
  }
}

TEST_F(Intercept, TellsAClientThatLeavesWithoutAWord) {
  const Outcome outcome = handshake([](int socket) { ::shutdown(socket, SHUT_WR); });
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().error.reason, Reason::ClientClosed);
}

}  // namespace
}  // namespace sallyport::egress
