#include "vault/base64_test.h"
#include "vault/process_fixture.h"

namespace sallyport::vault {
namespace {

using testing::HasSubstr;

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

TEST_F(VaultProcess, EndsASessionOnAMessageThatIsNoneOfTheWardens) {
  const auto talk = [&]() -> net::Task<> {
    send_start();
    co_await expect<wire::Ready>();
    EXPECT_TRUE(warden_->send("not a message", {}));
    const auto end = co_await warden_->receive();
    EXPECT_TRUE(!end || !*end);
  };
  net::test::run(worker_, talk());
}

TEST_F(VaultProcess, DoesNotBeginASessionWithoutAGrant) {
  const auto talk = [&]() -> net::Task<> {
    send(wire::VaultStart{"s1"}, file_with("not sealed"));
    const auto end = co_await warden_->receive();
    EXPECT_TRUE(!end || !*end);
  };
  net::test::run(worker_, talk());
}

TEST_F(VaultProcess, ServesSessionsThatKnowNothingOfEachOther) {
  server_.answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
  auto client = Client::make(worker_, "s1");
  auto other = Client::make(worker_, "s2");
  const auto first_warden = [&]() -> net::Task<> {
    send_start();
    co_await expect<wire::Ready>();
    send(wire::VaultCredential{"forge", ""}, file_with(std::string(kToken) + "\n"));
    EXPECT_EQ((co_await expect<wire::CredentialLoaded>()).problem, "");
    auto lanes = os::socket_pair(os::SocketKind::Packet).value();
    send(wire::VaultGate{}, std::move(lanes.first));
    client->use_channel(std::move(lanes.second));
    EXPECT_TRUE(co_await fetch(*client));
  };
  const auto second_warden = [&]() -> net::Task<> {
    auto session = os::socket_pair(os::SocketKind::Packet).value();
    tell_process(wire::OpenSession{}, {session.second.get()});
    session.second.reset();
    const auto first = std::exchange(warden_, net::PacketChannel::make(worker_, std::move(session.first)));
    send_start("s2");
    co_await expect<wire::Ready>();
    auto lanes = os::socket_pair(os::SocketKind::Packet).value();
    send(wire::VaultGate{}, std::move(lanes.first));
    other->use_channel(std::move(lanes.second));
    // The other session's credential has the same name.
    EXPECT_EQ((co_await fetch(*other)).error().reason, Reason::CredentialUnavailable);
    // One that speaks of another session on its own lanes.
    auto third = Client::make(worker_, "s1");
    auto more = os::socket_pair(os::SocketKind::Packet).value();
    send(wire::VaultGate{}, std::move(more.first));
    third->use_channel(std::move(more.second));
    EXPECT_FALSE(co_await fetch(*third));
    // Its end is not the other's.
    warden_->close();
    EXPECT_TRUE(co_await fetch(*client));
    warden_->close();
  };
  net::test::run(worker_, first_warden());
  net::test::run(worker_, second_warden());
  const std::size_t first = server_.received.find("GET ");
  const std::size_t second = server_.received.find("GET ", first + 1);
  EXPECT_NE(second, std::string::npos);
  EXPECT_EQ(server_.received.find("GET ", second + 1), std::string::npos);
}

}  // namespace
}  // namespace sallyport::vault
