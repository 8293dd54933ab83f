#include "egress/hello_peek.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "egress/test_client.h"
#include "egress/test_hello.h"

namespace sallyport::egress {
namespace {

using namespace std::string_literals;
using namespace test;
using Outcome = std::expected<PeekedHello, HandshakeRefusal>;

constexpr int kAlertProtocolVersion = 70;
constexpr int kAlertUnrecognizedName = 112;

// Peeks on this thread while `client` runs on another with its end of the connection.
class HelloPeek : public ::testing::Test {
 protected:
  Outcome peek(const std::function<void(int socket)>& client, std::string already_read = "",
               net::Clock::duration limit = kHandshakeLimit) {
    auto [server_end, client_end] = test_sockets();
    std::optional<Outcome> outcome;
    worker_.spawn("test",
                  [](HelloPeek& self, Fd socket, std::string early, net::Clock::duration most,
                     std::optional<Outcome>& out) -> net::Task<> {
                    out.emplace(co_await peek_hello(self.worker_, std::move(socket), std::move(early), most));
                    self.worker_.stop();
                  }(*this, std::move(server_end), std::move(already_read), limit, outcome));
    std::thread thread([&] { client(client_end.get()); });
    worker_.run();
    ::shutdown(client_end.get(), SHUT_RD);
    thread.join();
    return *std::move(outcome);
  }

  net::Worker worker_;
};

void send_all(int socket, std::string_view bytes) {
  static_cast<void>(::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL));
}

TEST_F(HelloPeek, GivesTheNameTheSocketAndEveryByte) {
  const std::string hello = client_hello_bytes({.sni = "API.ok.test"});
  const Outcome outcome = peek([&](int socket) { send_all(socket, hello + "early data"); });
  ASSERT_TRUE(outcome) << outcome.error().error.detail;
  EXPECT_EQ(outcome->hello.host.str(), "api.ok.test");
  EXPECT_FALSE(outcome->hello.has_ech);
  EXPECT_EQ(outcome->bytes, hello + "early data");
  EXPECT_GT(outcome->until, net::Clock::now());
  EXPECT_EQ(::send(outcome->socket.get(), "x", 1, MSG_NOSIGNAL), -1) << "the client has gone, not the socket";
  EXPECT_EQ(errno, EPIPE);
}

TEST_F(HelloPeek, WaitsForAHelloThatDrips) {
  std::mt19937 random(3);
  const std::string bytes = in_records(client_hello_bytes({.sni = "api.ok.test"}).substr(5), 1, random);
  const Outcome outcome = peek([&](int socket) {
    for (const char byte : bytes) send_all(socket, {&byte, 1});
  });
  ASSERT_TRUE(outcome) << outcome.error().error.detail;
  EXPECT_EQ(outcome->bytes, bytes);
}

TEST_F(HelloPeek, BeginsWithWhatWasReadBefore) {
  const std::string hello = client_hello_bytes({.sni = "api.ok.test"});
  for (const std::size_t early : {std::size_t{1}, std::size_t{100}, hello.size()}) {
    const Outcome outcome =
        peek([&](int socket) { send_all(socket, hello.substr(early)); }, hello.substr(0, early));
    ASSERT_TRUE(outcome) << outcome.error().error.detail;
    EXPECT_EQ(outcome->bytes, hello);
  }
}

TEST_F(HelloPeek, RefusesByAnAlert) {
  struct Case {
    TestClient::Options options;
    Reason reason;
    int alert;
  };
  const std::vector<Case> cases{
      {{.sni = ""}, Reason::NoSni, kAlertUnrecognizedName},
      {{.sni = "127.1"}, Reason::IpLiteral, kAlertUnrecognizedName},
      {{.sni = "api.ok.test:443"}, Reason::BadRequest, kAlertUnrecognizedName},
      {{.min_version = TLS1_VERSION, .max_version = TLS1_VERSION}, Reason::NotTls, kAlertProtocolVersion},
      {{.min_version = TLS1_VERSION, .max_version = TLS1_1_VERSION}, Reason::NotTls, kAlertProtocolVersion},
  };
  for (const auto& test : cases) {
    int alert = 0;
    const Outcome outcome = peek([&](int socket) {
      TestClient client(socket, test.options);
      EXPECT_FALSE(client.connect());
      alert = client.alert();
    });
    ASSERT_FALSE(outcome) << test.options.sni;
    EXPECT_EQ(outcome.error().error.reason, test.reason) << outcome.error().error.detail;
    EXPECT_EQ(alert, test.alert) << test.options.sni;
  }
}

TEST_F(HelloPeek, SendsAnAlertForItsCaller) {
  auto [server_end, client_end] = test_sockets();
  send_alert(server_end, Reason::HostNotAllowed);
  TestClient client(client_end.get(), {.sni = "evil.test"});
  EXPECT_FALSE(client.connect());
  EXPECT_EQ(client.alert(), kAlertUnrecognizedName);
}

TEST_F(HelloPeek, RefusesWhatIsNoHelloAtOnce) {
  // None of these clients says more, nor hangs up.
  EXPECT_EQ(peek([](int socket) { send_all(socket, "SSH-2.0-x\r\n"); }).error().error.reason, Reason::NotTls);
  EXPECT_EQ(peek([](int socket) { send_all(socket, record("\x01\x01\0\0"s)); }).error().error.reason,
            Reason::TooLarge);
  EXPECT_EQ(peek([](int) {}, "GET / HTTP/1.1\r\n\r\n").error().error.reason, Reason::NotTls);
}

TEST_F(HelloPeek, TellsAClientThatLeavesFromOneThatIsSilent) {
  const std::string half = client_hello_bytes({}).substr(0, 50);
  for (const std::string& bytes : {""s, half}) {
    const auto left = peek([&](int socket) {
      send_all(socket, bytes);
      ::shutdown(socket, SHUT_WR);
    });
    ASSERT_FALSE(left);
    EXPECT_EQ(left.error().error.reason, Reason::ClientClosed);
    const auto silent = peek([&](int socket) { send_all(socket, bytes); }, "", std::chrono::milliseconds(1));
    ASSERT_FALSE(silent);
    EXPECT_EQ(silent.error().error.reason, Reason::ClientTimeout);
  }
}

// D11: what drips in does not push the limit away.
TEST_F(HelloPeek, HasALimitForTheWholeHello) {
  const auto outcome = peek(
      [](int socket) {
        const std::string endless = record(message(std::string(16'000, 'x')));
        for (const char byte : endless) {
          if (::send(socket, &byte, 1, MSG_NOSIGNAL) != 1) return;
          pollfd gone{.fd = socket, .events = POLLRDHUP, .revents = 0};
          if (::poll(&gone, 1, 10) != 0) return;
        }
      },
      "", std::chrono::milliseconds(100));
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().error.reason, Reason::ClientTimeout);
}

}  // namespace
}  // namespace sallyport::egress
