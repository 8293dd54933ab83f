#include "os/packet_listener.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/local_test.h"
#include "os/unix_socket.h"

namespace sallyport::os {
namespace {

using ::testing::HasSubstr;

bool has_ended(const Fd& pidfd) {
  pollfd end{pidfd.get(), POLLIN, 0};
  return ::poll(&end, 1, 0) == 1;
}

TEST(PacketListenerTest, TellsWhoCame) {
  const PrivateFolder room;
  auto listener = PacketListener::open(room / "socket");
  ASSERT_TRUE(listener) << listener.error().detail;
  auto nobody = listener->accept();
  ASSERT_TRUE(nobody);
  EXPECT_FALSE(*nobody);

  const pid_t child = ::fork();
  if (child == 0) {
    auto connection = connect_packets(room / "socket");
    if (!connection || !send_packet(connection->get(), "hello")) ::_exit(1);
    for (;;) ::pause();
  }
  pollfd come{listener->fd(), POLLIN, 0};
  ASSERT_EQ(::poll(&come, 1, 10'000), 1);
  auto accepted = listener->accept();
  ASSERT_TRUE(accepted && *accepted);
  EXPECT_EQ((*accepted)->pid, child);
  EXPECT_FALSE(has_ended((*accepted)->pidfd));
  pollfd said{(*accepted)->connection.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&said, 1, 10'000), 1);
  auto packet = recv_packet((*accepted)->connection.get());
  ASSERT_TRUE(packet && *packet);
  EXPECT_EQ((*packet)->bytes, "hello");
  EXPECT_EQ(::fcntl((*accepted)->connection.get(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  EXPECT_EQ(::fcntl((*accepted)->connection.get(), F_GETFL) & O_NONBLOCK, O_NONBLOCK);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(has_ended((*accepted)->pidfd));
}

TEST(PacketListenerTest, IsForWhomeverIsShownIt) {
  if (::geteuid() != 0) GTEST_SKIP() << "another user needs root";
  const PrivateFolder room;
  ASSERT_EQ(::chmod(room.path().c_str(), 0711), 0);
  const mode_t before = ::umask(077);
  auto listener = PacketListener::open(room / "socket");
  ::umask(before);
  ASSERT_TRUE(listener);
  EXPECT_EQ(as_user(kStranger, kStranger, [&] { return connect_packets(room / "socket") ? 0 : 1; }), 0);
}

TEST(PacketListenerTest, GoesAway) {
  const PrivateFolder room;
  {
    auto listener = PacketListener::open(room / "socket");
    ASSERT_TRUE(listener);
    const PacketListener moved = std::move(*listener);
    EXPECT_TRUE(connect_packets(room / "socket"));
  }
  EXPECT_FALSE(std::filesystem::exists(room / "socket"));
}

TEST(PacketListenerTest, TakesNoPathThatIsTakenOrTooLong) {
  const PrivateFolder room;
  auto first = PacketListener::open(room / "socket");
  ASSERT_TRUE(first);
  EXPECT_THAT(PacketListener::open(room / "socket").error().detail, HasSubstr("bind"));
  EXPECT_TRUE(std::filesystem::exists(room / "socket"));
  EXPECT_THAT(PacketListener::open(room / std::string(100, 'x')).error().detail, HasSubstr("too long"));
  EXPECT_THAT(connect_packets(room / std::string(100, 'x')).error().detail, HasSubstr("too long"));
  EXPECT_THAT(connect_packets(room / "nothing").error().detail, HasSubstr("connect to"));
}

}  // namespace
}  // namespace sallyport::os
