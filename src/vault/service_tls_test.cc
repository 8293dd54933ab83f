// The whole of the vault against a real TLS server on loopback: where the credential shows, and where it does
// not.

#include "base/text.h"
#include "upstream/connector.h"
#include "vault/base64_test.h"
#include "vault/frames.h"
#include "vault/service_fixture.h"
#include "vault/tls_server_fixture.h"

namespace sallyport::vault {
namespace {

using testing::HasSubstr;
using testing::Not;

class VaultOverTls : public testing::Test {
 protected:
  explicit VaultOverTls(std::string_view certificate_name = "forge.test") : server_(certificate_name) {
    net::test::ignore_sigpipe();
    policy::Grant grant = test_grant();
    policy::UpstreamHost& entry = grant.hosts.at(host("forge.test"));
    entry.address = policy::parse_pinned_address("127.0.0.1:" + std::to_string(server_.listener.port()));
    entry.ca_pem = net::certificate_pem(*server_.ca.certificate).value();
    grant_ = std::make_shared<const policy::Grant>(std::move(grant));
    resolver_ = net::Resolver::make(worker_).value();
    connector_ = upstream::Connector::make(worker_, *resolver_, grant_).value();
    service_ = std::make_unique<Service>(
        worker_, Service::Setup{.session = "s1",
                                .grant = grant_,
                                .open =
                                    [this](upstream::Request request, upstream::Credential credential) {
                                      return connector_->open(std::move(request), std::move(credential));
                                    },
                                .report = [this](audit::Event event) -> Status {
                                  events_.push_back(std::move(event));
                                  return {};
                                },
                                .limits = {}});
    service_->set_credential("forge", secret(kToken));
    auto pair = os::socket_pair(os::SocketKind::Packet).value();
    service_->use_gate(std::move(pair.first));
    gate_ = std::move(pair.second);
    worker_.spawn("server", server_.serve(worker_));
  }

  // Everything that the vault says to `requests` fetches on one lane, as raw bytes.
  std::string fetch(int requests) {
    std::string heard;
    net::test::run(worker_, fetch(requests, heard));
    return heard;
  }

  net::Task<> fetch(int requests, std::string& heard) {
    auto pair = os::socket_pair(os::SocketKind::Stream).value();
    const int fd = pair.second.get();
    EXPECT_TRUE(os::send_packet(gate_.get(), kLaneHello, {&fd, 1}));
    pair.second.reset();
    Frames frames(net::make_socket_stream(worker_, std::move(pair.first), net::Peer::Vault));
    const RequestHead head{.session = "s1",
                           .request_id = "r1",
                           .rule = 0,
                           .method = "GET",
                           .host = "forge.test",
                           .port = 443,
                           .target = "/acme/widget/info/refs?service=git-upload-pack",
                           .headers = {},
                           .body = upstream::BodyKind::None,
                           .body_bytes = 0};
    for (int i = 0; i < requests; ++i) {
      EXPECT_TRUE(co_await frames.write(FrameType::RequestHead, encode(head).value()));
      EXPECT_TRUE(co_await frames.write(FrameType::BodyEnd, {}));
      co_await hear_one(frames, heard);
    }
  }

  static net::Task<> hear_one(Frames& frames, std::string& heard) {
    for (;;) {
      auto header = co_await frames.read_header();
      if (!header || !*header) co_return;
      heard += co_await payload_of(frames, **header);
      if ((*header)->type == FrameType::AnswerEnd || (*header)->type == FrameType::Error) co_return;
    }
  }
  static net::Task<std::string> payload_of(Frames& frames, FrameHeader header) {
    auto payload = co_await frames.read_payload(header.bytes);
    co_return payload ? *payload : "";
  }

  // The token in every form that it has on our side.
  void expect_no_token(const std::string& text) {
    const std::string user(policy::basic_user(policy::HostKind::Generic));
    EXPECT_THAT(text, Not(HasSubstr(kToken)));
    EXPECT_THAT(text, Not(HasSubstr(base64(user + ":" + std::string(kToken)))));
    EXPECT_THAT(text, Not(HasSubstr(to_hex(kToken))));
    for (std::size_t offset = 0; offset < 3; ++offset) {
      EXPECT_THAT(text, Not(HasSubstr(base64(kToken.substr(offset, 12)))));
    }
  }

  net::Worker worker_;
  TlsServer server_;
  std::shared_ptr<const policy::Grant> grant_;
  std::unique_ptr<net::Resolver> resolver_;
  std::unique_ptr<upstream::Connector> connector_;
  std::unique_ptr<Service> service_;
  std::vector<audit::Event> events_;
  Fd gate_;
};

TEST_F(VaultOverTls, ShowsTheCredentialOnTheUpstreamsWireAndNowhereElse) {
  server_.answer =
      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Type: text/plain\r\nSet-Cookie: derived=1\r\n"
      "X-OAuth-Scopes: repo\r\n\r\nhello";
  const std::string heard = fetch(2);
  EXPECT_THAT(heard, HasSubstr("hello"));
  EXPECT_THAT(heard, Not(HasSubstr("derived")));
  expect_no_token(heard);
  for (const audit::Event& event : events_) expect_no_token(event.detail + event.path + event.credential);

  const std::string user(policy::basic_user(policy::HostKind::Generic));
  const std::string one =
      "GET /acme/widget/info/refs?service=git-upload-pack HTTP/1.1\r\nHost: forge.test\r\n"
      "Authorization: Basic " +
      base64(user + ":" + std::string(kToken)) + "\r\n\r\n";
  EXPECT_EQ(server_.received, one + one);
  EXPECT_EQ(server_.connections, 1);
}

TEST_F(VaultOverTls, KeepsARedirectsTargetAndAChallengeToItself) {
  server_.answer = "HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: https://elsewhere.test/\r\n\r\n";
  EXPECT_THAT(fetch(1), Not(HasSubstr("elsewhere")));
  server_.answer =
      "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nWWW-Authenticate: Basic realm=\"forge\"\r\n\r\n";
  EXPECT_THAT(fetch(1), Not(HasSubstr("realm")));
}

TEST_F(VaultOverTls, TellsAnAnswerThatItCannotReadWithoutQuotingIt) {
  const std::string user(policy::basic_user(policy::HostKind::Generic));
  const std::string echoed = base64(user + ":" + std::string(kToken));
  server_.answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\nX: " + echoed + "\r\n\r\n";
  const std::string heard = fetch(1);
  EXPECT_EQ(decode_error(heard).value().reason, Reason::UpstreamMalformed);
  expect_no_token(heard);
}

class VaultBeforeAnImpostor : public VaultOverTls {
 protected:
  VaultBeforeAnImpostor() : VaultOverTls("other.test") {}
};

TEST_F(VaultBeforeAnImpostor, SendsTheCredentialToNobodyWithoutTheHostsCertificate) {
  server_.answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
  const std::string heard = fetch(1);
  EXPECT_EQ(decode_error(heard).value().reason, Reason::UpstreamTls);
  EXPECT_EQ(server_.received, "");
  expect_no_token(heard);
}

}  // namespace
}  // namespace sallyport::vault
