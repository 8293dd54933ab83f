// The real program behind its real walls, with the test as its warden, its gate and its upstream.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "net/packet_channel.h"
#include "os/spawn.h"
#include "vault/base64_test.h"
#include "vault/client.h"
#include "vault/service_fixture.h"
#include "vault/tls_server_fixture.h"
#include "wire/grant_codec.h"
#include "wire/messages.h"
#include "wire/sealed.h"

namespace sallyport::vault {
namespace {

using testing::HasSubstr;

class VaultProcess : public testing::Test {
 protected:
  VaultProcess() {
    net::test::ignore_sigpipe();
    auto pair = os::socket_pair(os::SocketKind::Packet).value();
    std::vector<std::string> argv = {SALLYPORT_VAULT};
    if (::geteuid() == 0) argv.insert(argv.end(), {"--uid", "12345", "--gid", "12345"});
    os::SpawnSpec spec;
    spec.program = SALLYPORT_VAULT;
    spec.argv = argv;
    spec.descriptors = {{pair.second.get(), 3}, {STDERR_FILENO, STDERR_FILENO}};
    child_ = os::spawn(spec).value();
    warden_ = net::PacketChannel::make(worker_, std::move(pair.first));
    worker_.spawn("server", server_.serve(worker_));
  }
  // Its only way to end: the warden goes.
  ~VaultProcess() override {
    warden_.reset();
    const auto ended = os::wait_child_within(child_, std::chrono::seconds(10));
    EXPECT_TRUE(ended && *ended && (*ended)->code == expected_exit_);
  }
  VaultProcess(const VaultProcess&) = delete;
  VaultProcess& operator=(const VaultProcess&) = delete;

  void send(const wire::ToVault& message, Fd fd = {}) {
    std::vector<Fd> fds;
    if (fd) fds.push_back(std::move(fd));
    EXPECT_TRUE(warden_->send(wire::encode(message), std::move(fds)));
  }
  void send_start() {
    policy::Grant grant = test_grant();
    policy::UpstreamHost& entry = grant.hosts.at(host("forge.test"));
    entry.address = policy::parse_pinned_address("127.0.0.1:" + std::to_string(server_.listener.port()));
    entry.ca_pem = net::certificate_pem(*server_.ca.certificate).value();
    send(wire::VaultStart{"s1"}, wire::to_memfd(wire::encode_grant(grant)).value());
  }
  static Fd file_with(std::string_view bytes) {
    Fd file(::memfd_create("credential", MFD_CLOEXEC));
    EXPECT_EQ(::write(file.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    return file;
  }

  template <class Message>
  net::Task<Message> expect() {
    auto packet = co_await warden_->receive();
    if (!packet || !*packet) {
      ADD_FAILURE() << "the vault is gone";
      co_return Message{};
    }
    auto message = wire::decode_from_vault((*packet)->bytes);
    auto* wanted = message ? std::get_if<Message>(&*message) : nullptr;
    EXPECT_NE(wanted, nullptr);
    co_return wanted != nullptr ? std::move(*wanted) : Message{};
  }

  static net::Task<Result<upstream::AnswerHead>> fetch(Client& client) {
    auto route = policy::parse_git_route(host("forge.test"), policy::HostKind::Generic, "GET",
                                         "/acme/widget/info/refs?service=git-upload-pack");
    auto opened = co_await client.open({.request_id = "r1",
                                        .rule = 0,
                                        .route = route.value(),
                                        .port = 443,
                                        .headers = {},
                                        .body = upstream::BodyKind::None,
                                        .body_bytes = 0});
    if (!opened) co_return fail(std::move(opened));
    (void)co_await (*opened)->end_body();
    co_return co_await (*opened)->read_head();
  }

  net::Worker worker_;
  TlsServer server_{"forge.test"};
  os::Child child_;
  std::unique_ptr<net::PacketChannel> warden_;
  int expected_exit_ = 0;
};

TEST_F(VaultProcess, ServesAGateFromBehindItsWalls) {
  server_.answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
  auto client = Client::make(worker_, "s1");
  const auto talk = [&]() -> net::Task<> {
    send_start();
    co_await expect<wire::Ready>();
    send(wire::VaultCredential{"forge", ""}, file_with(std::string(kToken) + "\n"));
    const auto loaded = co_await expect<wire::CredentialLoaded>();
    EXPECT_EQ(loaded.name, "forge");
    EXPECT_EQ(loaded.problem, "");

    auto pair = os::socket_pair(os::SocketKind::Packet).value();
    send(wire::VaultGate{}, std::move(pair.second));
    client->use_channel(std::move(pair.first));
    const auto head = co_await fetch(*client);
    EXPECT_TRUE(head) << head.error().detail;
    const auto use = co_await expect<wire::VaultEvent>();
    EXPECT_EQ(use.event.kind, audit::Kind::Credential);
    EXPECT_EQ(use.event.credential, "forge");
    const std::string user(policy::basic_user(policy::HostKind::Generic));
    EXPECT_THAT(server_.received,
                HasSubstr("Authorization: Basic " + base64(user + ":" + std::string(kToken)) + "\r\n"));

    send(wire::VaultCredential{"forge", "the file is gone"});
    EXPECT_EQ((co_await expect<wire::CredentialLoaded>()).problem, "the file is gone");
    const auto refused = co_await fetch(*client);
    EXPECT_EQ(refused.error().reason, Reason::CredentialUnavailable);
  };
  net::test::run(worker_, talk());
}

TEST_F(VaultProcess, SaysWhatIsWrongWithACredentialAndNeverShowsIt) {
  const auto talk = [&]() -> net::Task<> {
    send_start();
    co_await expect<wire::Ready>();
    send(wire::VaultCredential{"forge", ""}, file_with("two words\n"));
    const auto bad = co_await expect<wire::CredentialLoaded>();
    EXPECT_THAT(bad.problem, HasSubstr("not printable"));
    EXPECT_THAT(bad.problem, testing::Not(HasSubstr("words")));
    send(wire::VaultCredential{"unknown", ""}, file_with("token"));
    EXPECT_THAT((co_await expect<wire::CredentialLoaded>()).problem, HasSubstr("no rule"));
  };
  net::test::run(worker_, talk());
}

TEST_F(VaultProcess, EndsOnAMessageThatIsNoneOfTheWardens) {
  expected_exit_ = 1;
  const auto talk = [&]() -> net::Task<> {
    send_start();
    co_await expect<wire::Ready>();
    EXPECT_TRUE(warden_->send("not a message", {}));
    const auto end = co_await warden_->receive();
    EXPECT_TRUE(!end || !*end);
  };
  net::test::run(worker_, talk());
}

TEST_F(VaultProcess, DoesNotStartWithoutAGrant) {
  expected_exit_ = 1;
  const auto talk = [&]() -> net::Task<> {
    send(wire::VaultStart{"s1"}, file_with("not sealed"));
    const auto end = co_await warden_->receive();
    EXPECT_TRUE(!end || !*end);
  };
  net::test::run(worker_, talk());
}

}  // namespace
}  // namespace sallyport::vault
