#include "net/tls.h"

#include <gtest/gtest.h>
#include <openssl/x509.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <string_view>
#include <thread>

#include "net/event.h"
#include "net/test_support.h"

namespace sallyport::net {
namespace {

constexpr auto kPatience = std::chrono::seconds(10);
constexpr int kDripMilliseconds = 5;

// Both ends of one TLS connection, or why there is none.
struct Handshake {
  Result<std::unique_ptr<Stream>> client = fail(Reason::Internal, "not tried");
  Result<AcceptedTls> server = fail(Reason::Internal, "not tried");
};

class Tls : public ::testing::Test {
 protected:
  void SetUp() override { test::ignore_sigpipe(); }

  Handshake shake(SSL_CTX& client_side, SSL_CTX& server_side, const char* name,
                  std::shared_ptr<TlsSessions> sessions = nullptr) {
    Handshake out;
    Event done(worker);
    Fd to = listener.connect();
    worker.spawn("server", [](Worker& w, SSL_CTX& context, Fd fd, Handshake& result, Event& over) -> Task<> {
      result.server = co_await accept_tls(w, context, nullptr, std::move(fd), kPatience);
      over.set();
    }(worker, server_side, listener.accept(), out, done));
    test::run(worker,
              [](Worker& w, SSL_CTX& context, Fd fd, policy::HostName host, Handshake& result,
                 Event& server_done, std::shared_ptr<TlsSessions> kept) -> Task<> {
                result.client = co_await connect_tls(w, context, std::move(fd), std::move(host), kPatience,
                                                     std::move(kept));
                co_await server_done.wait();
              }(worker, client_side, std::move(to), test::host(name), out, done, std::move(sessions)));
    return out;
  }

  SslContext trusting(const KeyPair& authority) {
    return make_client_context(certificate_pem(*authority.certificate).value()).value();
  }

  Worker worker;
  test::Listener listener;
  KeyPair ca = make_session_ca("0123").value();
  KeyPair leaf = make_leaf(ca, test::host("forge.test")).value();
};

Task<Result<std::string>> read(Stream& stream) {
  std::array<char, 64> buffer{};
  const auto got = co_await stream.read_some(buffer);
  if (!got) co_return std::unexpected(got.error());
  co_return std::string(buffer.data(), *got);
}

TEST_F(Tls, SpeaksTls13AndCarriesBytes) {
  auto both = shake(*trusting(ca), *test::server_context(leaf), "forge.test");
  ASSERT_TRUE(both.client) << both.client.error().detail;
  ASSERT_TRUE(both.server) << both.server.error().detail;
  EXPECT_STREQ(SSL_get_version(both.server->ssl), "TLSv1.3");
  EXPECT_STREQ(SSL_get_servername(both.server->ssl, TLSEXT_NAMETYPE_host_name), "forge.test");
  ASSERT_TRUE(test::run(worker, (*both.client)->write_all("hello")));
  EXPECT_EQ(test::run(worker, read(*both.server->stream)), "hello");
  EXPECT_TRUE((*both.client)->quiet()) << "session tickets are not data";
}

TEST_F(Tls, RefusesACertificateForAnotherName) {
  const auto both = shake(*trusting(ca), *test::server_context(leaf), "other.test");
  ASSERT_FALSE(both.client);
  EXPECT_EQ(both.client.error().reason, Reason::UpstreamTls);
  EXPECT_EQ(both.client.error().detail, "certificate: hostname mismatch");
  ASSERT_FALSE(both.server);
  EXPECT_EQ(both.server.error().reason, Reason::TlsPinned);
}

TEST_F(Tls, RefusesAnUnknownAuthority) {
  const auto other = make_session_ca("4567").value();
  const auto both = shake(*trusting(other), *test::server_context(leaf), "forge.test");
  ASSERT_FALSE(both.client);
  EXPECT_EQ(both.client.error().reason, Reason::UpstreamTls);
  EXPECT_EQ(both.client.error().detail, "certificate: unable to get local issuer certificate");
}

TEST_F(Tls, RefusesTheSystemsRootsForAPrivateAuthority) {
  const auto context = make_client_context("");
  ASSERT_TRUE(context) << context.error().detail;
  const auto both = shake(**context, *test::server_context(leaf), "forge.test");
  ASSERT_FALSE(both.client);
  EXPECT_EQ(both.client.error().reason, Reason::UpstreamTls);
}

TEST_F(Tls, RefusesAnExpiredCertificate) {
  X509_gmtime_adj(X509_getm_notAfter(leaf.certificate.get()), -60);
  ASSERT_NE(X509_sign(leaf.certificate.get(), ca.key.get(), EVP_sha256()), 0);
  const auto both = shake(*trusting(ca), *test::server_context(leaf), "forge.test");
  ASSERT_FALSE(both.client);
  EXPECT_EQ(both.client.error().reason, Reason::UpstreamTls);
  EXPECT_EQ(both.client.error().detail, "certificate: certificate has expired");
}

TEST_F(Tls, RefusesTls11) {
  const auto old = test::server_context(leaf);
  SSL_CTX_set_min_proto_version(old.get(), TLS1_VERSION);
  SSL_CTX_set_max_proto_version(old.get(), TLS1_1_VERSION);
  const auto both = shake(*trusting(ca), *old, "forge.test");
  ASSERT_FALSE(both.client);
  EXPECT_EQ(both.client.error().reason, Reason::UpstreamTls);
}

TEST_F(Tls, AClientThatDripsItsHelloGetsNoMoreTimeForEachByte) {
  const Fd dripping = listener.connect();
  // Begins as a ClientHello of 16,000 bytes, and goes on for as long as somebody reads.
  std::thread client([&dripping] {
    std::string_view next("\x16\x03\x01\x3e\x80\x01\x00\x3e\x7c", 9);
    while (::send(dripping.get(), next.data(), 1, MSG_NOSIGNAL) == 1) {
      if (next.size() > 1) next.remove_prefix(1);
      pollfd hung_up{dripping.get(), POLLIN, 0};
      if (::poll(&hung_up, 1, kDripMilliseconds) != 0) return;
    }
  });
  const auto context = test::server_context(leaf);
  const auto slow = test::run(worker, accept_tls(worker, *context, nullptr, listener.accept(),
                                                 std::chrono::milliseconds(20 * kDripMilliseconds)));
  client.join();
  ASSERT_FALSE(slow);
  EXPECT_EQ(slow.error().reason, Reason::ClientTimeout);
}

TEST_F(Tls, WhoeverDoesNotSpeakTlsIsToldApart) {
  Fd raw = listener.connect();
  ASSERT_EQ(::send(raw.get(), "GET / HTTP/1.1\r\n\r\n", 18, 0), 18);
  const auto context = test::server_context(leaf);
  const auto plain = test::run(worker, accept_tls(worker, *context, nullptr, listener.accept(), kPatience));
  ASSERT_FALSE(plain);
  EXPECT_EQ(plain.error().reason, Reason::NotTls);

  Fd silent = listener.connect();
  const auto slow = test::run(
      worker, accept_tls(worker, *context, nullptr, listener.accept(), std::chrono::milliseconds(1)));
  ASSERT_FALSE(slow);
  EXPECT_EQ(slow.error().reason, Reason::ClientTimeout);

  Fd gone = listener.connect();
  gone.reset();
  const auto left = test::run(worker, accept_tls(worker, *context, nullptr, listener.accept(), kPatience));
  ASSERT_FALSE(left);
  EXPECT_EQ(left.error().reason, Reason::ClientClosed);
}

TEST_F(Tls, AnUpstreamThatIsSilentOrHangsUpInTheHandshakeIsToldApart) {
  const auto context = trusting(ca);
  Fd to = listener.connect();
  const auto slow = test::run(worker, connect_tls(worker, *context, std::move(to), test::host("forge.test"),
                                                  std::chrono::milliseconds(1)));
  ASSERT_FALSE(slow);
  EXPECT_EQ(slow.error().reason, Reason::UpstreamTimeout);
  (void)listener.accept();

  to = listener.connect();
  ::shutdown(listener.accept().get(), SHUT_RDWR);
  const auto gone =
      test::run(worker, connect_tls(worker, *context, std::move(to), test::host("forge.test"), kPatience));
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().reason, Reason::UpstreamTls);
}

TEST_F(Tls, CloseNotifyIsAnOrderlyEndAndAFinIsNot) {
  auto both = shake(*trusting(ca), *test::server_context(leaf), "forge.test");
  ASSERT_TRUE(both.client && both.server);
  ASSERT_TRUE(test::run(worker, both.server->stream->shutdown_write()));
  EXPECT_EQ(test::run(worker, read(**both.client)), "");
  // The other direction goes on.
  ASSERT_TRUE(test::run(worker, (*both.client)->write_all("late")));
  EXPECT_EQ(test::run(worker, read(*both.server->stream)), "late");

  both = shake(*trusting(ca), *test::server_context(leaf), "forge.test");
  ASSERT_TRUE(both.client && both.server);
  both.server->stream->close();
  const auto cut = test::run(worker, read(**both.client));
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().reason, Reason::UpstreamClosed);
  EXPECT_NE(cut.error().detail.find("unexpected eof"), std::string::npos) << cut.error().detail;
}

TEST_F(Tls, WaitReadableSeesWhatOpenSslHasReadAlready) {
  auto both = shake(*trusting(ca), *test::server_context(leaf), "forge.test");
  ASSERT_TRUE(both.client && both.server);
  ASSERT_TRUE(test::run(worker, both.server->stream->write_all("two bytes")));
  std::array<char, 1> byte{};
  EXPECT_EQ(test::run(worker, (*both.client)->read_some(byte)), 1U);
  EXPECT_TRUE(test::run(worker, (*both.client)->wait_readable()));
  EXPECT_FALSE((*both.client)->quiet());
  EXPECT_EQ(test::run(worker, read(**both.client)), "wo bytes");
  EXPECT_TRUE((*both.client)->quiet());
}

TEST_F(Tls, RefusesToRenegotiateAndGoesOn) {
  const auto old = test::server_context(leaf);
  SSL_CTX_set_max_proto_version(old.get(), TLS1_2_VERSION);
  auto both = shake(*trusting(ca), *old, "forge.test");
  ASSERT_TRUE(both.client && both.server);
  SSL* server = both.server->ssl;
  SSL_clear_options(server, SSL_OP_NO_RENEGOTIATION);  // ours, on either side
  ASSERT_EQ(SSL_renegotiate(server), 1);
  ASSERT_EQ(SSL_do_handshake(server), 1) << "a hello request was sent";
  ASSERT_TRUE(test::run(worker, both.server->stream->write_all("hello")));
  EXPECT_EQ(test::run(worker, read(**both.client)), "hello");
  ASSERT_TRUE(test::run(worker, (*both.client)->write_all("still here")));
  // The first thing that the server reads is the refusal, which is an error to it: no second handshake.
  (void)test::run(worker, read(*both.server->stream));
  EXPECT_EQ(SSL_CTX_sess_accept_good(old.get()), 1);
}

TEST_F(Tls, ShowsNoCertificateToAServerThatAsksForOne) {
  const auto curious = test::server_context(leaf);
  SSL_CTX_set_verify(curious.get(), SSL_VERIFY_PEER, nullptr);
  auto both = shake(*trusting(ca), *curious, "forge.test");
  ASSERT_TRUE(both.client && both.server);
  EXPECT_EQ(SSL_get0_peer_certificate(both.server->ssl), nullptr);
  EXPECT_EQ(SSL_verify_client_post_handshake(both.server->ssl), 0) << "it was not offered to be asked later";
  (void)take_openssl_errors();
}

TEST_F(Tls, EndsAConnectionThatHasOnlyMessagesOfTheHandshakeToSay) {
  using Say = int (*)(SSL*);
  const Say kinds[] = {
      [](SSL* server) { return SSL_new_session_ticket(server); },
      [](SSL* server) { return SSL_key_update(server, SSL_KEY_UPDATE_NOT_REQUESTED); },
  };
  for (const Say say : kinds) {
    auto both = shake(*trusting(ca), *test::server_context(leaf), "forge.test");
    ASSERT_TRUE(both.client && both.server);
    const auto repeat = [&](int times) {
      for (int i = 0; i < times; ++i) {
        ASSERT_EQ(say(both.server->ssl), 1);
        ASSERT_EQ(SSL_do_handshake(both.server->ssl), 1);
      }
    };
    // As many as that between two pieces of data are nobody's fault.
    for (int i = 0; i < 3; ++i) {
      repeat(kMaxTlsMessages / 2);
      ASSERT_TRUE(test::run(worker, both.server->stream->write_all("hello")));
      ASSERT_EQ(test::run(worker, read(**both.client)), "hello");
    }
    repeat(kMaxTlsMessages + 1);
    ASSERT_TRUE(test::run(worker, both.server->stream->write_all("hello")));
    const auto end = test::run(worker, read(**both.client));
    if (end) {
      // What came in one piece with the last of them.
      EXPECT_FALSE(test::run(worker, read(**both.client)));
    } else {
      EXPECT_EQ(end.error().reason, Reason::UpstreamClosed);
    }
  }
}

// What a connection leaves for the next one.
class TlsResumption : public Tls {
 protected:
  // One connection on which the server says a word, since tickets are read with data.
  bool connect_and_tell_if_resumed(SSL_CTX& client_side, SSL_CTX& server_side) {
    const auto both = shake(client_side, server_side, "forge.test", sessions);
    if (!both.client || !both.server) return false;
    EXPECT_TRUE(test::run(worker, both.server->stream->write_all("hello")));
    EXPECT_EQ(test::run(worker, read(**both.client)), "hello");
    return SSL_session_reused(both.server->ssl) == 1;
  }

  std::shared_ptr<TlsSessions> sessions = std::make_shared<TlsSessions>();
};

TEST_F(TlsResumption, WorksWithEitherVersionAndKeepsFewSessions) {
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    sessions = std::make_shared<TlsSessions>();
    const auto client_side = trusting(ca);
    const auto server_side = test::server_context(leaf);
    SSL_CTX_set_max_proto_version(server_side.get(), version);
    EXPECT_FALSE(connect_and_tell_if_resumed(*client_side, *server_side));
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(connect_and_tell_if_resumed(*client_side, *server_side)) << i;
    EXPECT_LE(sessions->size(), TlsSessions::kMaxSessions);
  }
}

TEST_F(TlsResumption, DoesNotOutliveTheCertificateThatWasVerified) {
  const auto client_side = trusting(ca);
  const auto server_side = test::server_context(leaf);
  EXPECT_FALSE(connect_and_tell_if_resumed(*client_side, *server_side));
  SSL_SESSION* session = sessions->take();
  ASSERT_NE(session, nullptr);
  X509_gmtime_adj(X509_getm_notAfter(SSL_SESSION_get0_peer(session)), -60);
  sessions = std::make_shared<TlsSessions>();
  sessions->put(*session);
  SSL_SESSION_free(session);
  EXPECT_EQ(sessions->size(), 1U);
  EXPECT_EQ(sessions->take(), nullptr);
}

TEST_F(TlsResumption, KeepsNoTicketThatIsHuge) {
  const auto client_side = trusting(ca);
  const auto server_side = test::server_context(leaf);
  std::string chosen(2 * TlsSessions::kMaxTicketBytes, 'x');
  SSL_CTX_set_session_ticket_cb(
      server_side.get(),
      [](SSL* ssl, void* data) {
        const auto& bytes = *static_cast<std::string*>(data);
        return SSL_SESSION_set1_ticket_appdata(SSL_get_session(ssl), bytes.data(), bytes.size());
      },
      [](SSL*, SSL_SESSION*, const unsigned char*, std::size_t, SSL_TICKET_STATUS, void*) {
        return SSL_TICKET_RETURN_IGNORE_RENEW;
      },
      &chosen);
  EXPECT_FALSE(connect_and_tell_if_resumed(*client_side, *server_side));
  EXPECT_EQ(sessions->size(), 0U);
}

TEST_F(TlsResumption, IsNoWayAroundTheCheckOfACertificate) {
  const auto client_side = trusting(make_session_ca("4567").value());
  const auto both = shake(*client_side, *test::server_context(leaf), "forge.test", sessions);
  EXPECT_FALSE(both.client);
  EXPECT_EQ(sessions->size(), 0U);
}

TEST_F(Tls, RefusesCaTextsThatAreNone) {
  const std::string good = certificate_pem(*ca.certificate).value();
  for (const std::string& text : {std::string("nonsense"), good.substr(0, good.size() / 2),
                                  good + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"}) {
    const auto context = make_client_context(text);
    ASSERT_FALSE(context) << text;
    EXPECT_EQ(context.error().reason, Reason::Internal);
  }
  EXPECT_TRUE(make_client_context(good + good));
}

}  // namespace
}  // namespace sallyport::net
