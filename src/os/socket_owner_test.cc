#include "os/socket_owner.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

#include "os/endpoint.h"
#include "os/listener.h"
#include "os/unix_socket.h"

namespace sallyport::os {
namespace {

constexpr uid_t kSomebody = 65534;

class PeerOwner : public ::testing::TestWithParam<const char*> {
 protected:
  Fd connect() {
    Endpoint where = *endpoint_from(GetParam(), listener_.port);
    Fd client(::socket(where.family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const SocketAddress address = socket_address(where);
    EXPECT_EQ(::connect(client.get(), address.get(), address.length), 0);
    return client;
  }
  Fd accept() {
    EXPECT_TRUE(wait_readable(listener_.fd.get(), std::chrono::seconds(30)).value_or(false));
    return Fd(::accept4(listener_.fd.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }

  Listener listener_ = *open_listener(*endpoint_from(GetParam(), 0), ListenerKind::Tcp);
  Fd diagnosis_ = *open_socket_diagnosis();
};

TEST_P(PeerOwner, IsWhoMadeTheSocket) {
  const Fd client = connect();
  const Fd accepted = accept();
  for (int i = 0; i < 3; ++i) {
    const auto owner = peer_owner(diagnosis_.get(), accepted.get());
    ASSERT_TRUE(owner) << owner.error().detail;
    EXPECT_EQ(*owner, ::geteuid());
  }
  const auto from_the_other_side = peer_owner(diagnosis_.get(), client.get());
  ASSERT_TRUE(from_the_other_side);
}

TEST_P(PeerOwner, IsAnotherUserWhereItIsOne) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be somebody else";
  int end[2];
  ASSERT_EQ(::pipe(end), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setuid(kSomebody) != 0) ::_exit(1);
    const Fd client = connect();
    ::close(end[1]);
    char wait = 0;
    static_cast<void>(::read(end[0], &wait, 1));
    ::_exit(0);
  }
  const Fd accepted = accept();
  const auto owner = peer_owner(diagnosis_.get(), accepted.get());
  ::close(end[0]);
  ::close(end[1]);
  ::waitpid(child, nullptr, 0);
  ASSERT_TRUE(owner) << owner.error().detail;
  EXPECT_EQ(*owner, kSomebody);
}

// The kernel calls it root's: whoever sends and closes would be taken for root.
TEST_P(PeerOwner, IsNotSaidOfASocketThatIsClosed) {
  Fd client = connect();
  const Fd accepted = accept();
  ASSERT_EQ(::send(client.get(), "request", 7, 0), 7);
  client.reset();
  const auto owner = peer_owner(diagnosis_.get(), accepted.get());
  ASSERT_FALSE(owner);
  EXPECT_EQ(owner.error().reason, Reason::ClientClosed);
}

TEST_P(PeerOwner, IsNotSaidOfASocketThatWasReset) {
  Fd client = connect();
  const Fd accepted = accept();
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ASSERT_EQ(::setsockopt(client.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
  client.reset();
  const auto owner = peer_owner(diagnosis_.get(), accepted.get());
  ASSERT_FALSE(owner);
  EXPECT_EQ(owner.error().reason, Reason::ClientClosed);
}

INSTANTIATE_TEST_SUITE_P(Addresses, PeerOwner, ::testing::Values("127.0.0.1", "127.3.2.1", "::1"));

TEST(SocketDiagnosis, AnswersHere) {
  const auto diagnosis = open_socket_diagnosis();
  ASSERT_TRUE(diagnosis);
  const auto answers = check_socket_diagnosis(diagnosis->get());
  EXPECT_TRUE(answers) << answers.error().detail;
}

TEST(EndpointText, IsAnAddressWithAPort) {
  for (const char* text : {"127.0.0.1:3128", "127.0.0.1:0", "[::1]:65535", "192.0.2.1:443"}) {
    const auto endpoint = endpoint_from_text(text);
    ASSERT_TRUE(endpoint) << text;
    EXPECT_EQ(endpoint->text(), text);
  }
  for (const char* text :
       {"", "127.0.0.1", ":80", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "127.1:80", "::1:80",
        "[127.0.0.1]:80", "[::1]", "[::1:80", "localhost:80", "127.0.0.1:80 ", "127.0.0.1:0x50"}) {
    EXPECT_FALSE(endpoint_from_text(text)) << text;
  }
}

TEST(EndpointText, TellsLoopbackFromTheRest) {
  for (const char* text : {"127.0.0.1:1", "127.255.255.254:1", "[::1]:1"}) {
    EXPECT_TRUE(endpoint_from_text(text)->is_loopback()) << text;
  }
  for (const char* text :
       {"0.0.0.0:1", "128.0.0.1:1", "10.0.0.1:1", "[::]:1", "[::2]:1", "[1::1]:1", "[::ffff:127.0.0.1]:1"}) {
    EXPECT_FALSE(endpoint_from_text(text)->is_loopback()) << text;
  }
}

}  // namespace
}  // namespace sallyport::os
