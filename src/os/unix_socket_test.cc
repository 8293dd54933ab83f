#include "os/unix_socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

namespace sallyport::os {
namespace {

class UnixSocket : public ::testing::Test {
 protected:
  void SetUp() override {
    auto pair = socket_pair(SocketKind::Packet);
    ASSERT_TRUE(pair);
    near_ = std::move(pair->first);
    far_ = std::move(pair->second);
  }
  Fd near_;
  Fd far_;
};

int open_descriptors() {
  int count = 0;
  for (int fd = 0; fd < 256; ++fd) count += ::fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
  return count;
}

// Past the limits of send_packet(): what a broken or hostile peer would do.
void send_descriptors_raw(int socket, int count) {
  std::vector<char> control(CMSG_SPACE(sizeof(int) * static_cast<std::size_t>(count)));
  char byte = 'x';
  iovec part{&byte, 1};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int) * static_cast<std::size_t>(count));
  const std::vector<int> fds(static_cast<std::size_t>(count), STDIN_FILENO);
  std::memcpy(CMSG_DATA(header), fds.data(), sizeof(int) * fds.size());
  ASSERT_EQ(::sendmsg(socket, &message, 0), 1);
}

TEST_F(UnixSocket, KeepsPacketsApart) {
  ASSERT_TRUE(send_packet(near_.get(), "one"));
  ASSERT_TRUE(send_packet(near_.get(), std::string(kMaxPacketBytes, 'x')));
  auto first = recv_packet(far_.get());
  ASSERT_TRUE(first && *first);
  EXPECT_EQ((*first)->bytes, "one");
  EXPECT_FALSE((*first)->end);
  auto second = recv_packet(far_.get());
  ASSERT_TRUE(second && *second);
  EXPECT_EQ((*second)->bytes.size(), kMaxPacketBytes);
}

TEST_F(UnixSocket, PassesDescriptorsThatCloseOnExec) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const Fd read_end(ends[0]);
  {
    const Fd write_end(ends[1]);
    const std::vector<int> sent(kMaxPacketFds, write_end.get());
    ASSERT_TRUE(send_packet(near_.get(), "fds", sent));
  }
  {
    auto packet = recv_packet(far_.get());
    ASSERT_TRUE(packet && *packet);
    ASSERT_EQ((*packet)->fds.size(), kMaxPacketFds);
    for (const Fd& fd : (*packet)->fds) EXPECT_EQ(::fcntl(fd.get(), F_GETFD), FD_CLOEXEC);
    ASSERT_EQ(::write((*packet)->fds[3].get(), "x", 1), 1);
  }
  char bytes[2];
  EXPECT_EQ(::read(read_end.get(), bytes, 2), 1);
  EXPECT_EQ(::read(read_end.get(), bytes, 2), 0) << "a copy of the descriptor is still open";
}

TEST_F(UnixSocket, TellsTheEndFromNothingYet) {
  ASSERT_TRUE(set_nonblocking(far_.get()));
  auto nothing = recv_packet(far_.get());
  ASSERT_TRUE(nothing);
  EXPECT_FALSE(*nothing);
  near_.reset();
  auto end = recv_packet(far_.get());
  ASSERT_TRUE(end && *end);
  EXPECT_TRUE((*end)->end);
  const auto sent = send_packet(far_.get(), "late");
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().reason, Reason::SessionEnded);
}

TEST_F(UnixSocket, HearsTheLastWordOfOneThatWentWithoutReadingAll) {
  ASSERT_TRUE(send_packet(far_.get(), "never read"));
  ASSERT_TRUE(send_packet(near_.get(), "last word"));
  near_.reset();
  auto last = recv_packet(far_.get());
  ASSERT_TRUE(last && *last);
  EXPECT_EQ((*last)->bytes, "last word");
  auto end = recv_packet(far_.get());
  ASSERT_TRUE(end && *end);
  EXPECT_TRUE((*end)->end);
}

TEST_F(UnixSocket, RefusesToSendWhatTheOtherSideWouldNotTake) {
  EXPECT_EQ(send_packet(near_.get(), "").error().detail, "send: an empty packet");
  EXPECT_EQ(send_packet(near_.get(), std::string(kMaxPacketBytes + 1, 'x')).error().detail,
            "send: the packet is too large");
  EXPECT_EQ(send_packet(near_.get(), "x", std::vector<int>(kMaxPacketFds + 1, 0)).error().detail,
            "send: too many descriptors");
}

TEST_F(UnixSocket, RefusesATruncatedPacket) {
  const std::string large(kMaxPacketBytes + 1, 'x');
  ASSERT_EQ(::send(near_.get(), large.data(), large.size(), 0), static_cast<ssize_t>(large.size()));
  auto packet = recv_packet(far_.get());
  ASSERT_FALSE(packet);
  EXPECT_EQ(packet.error().detail, "receive: the packet is too large");
}

TEST_F(UnixSocket, ClosesTheDescriptorsOfAPacketThatHasTooMany) {
  const int before = open_descriptors();
  send_descriptors_raw(near_.get(), static_cast<int>(kMaxPacketFds) + 1);
  auto packet = recv_packet(far_.get());
  ASSERT_FALSE(packet);
  EXPECT_EQ(packet.error().detail, "receive: too many descriptors");
  EXPECT_EQ(open_descriptors(), before);
}

TEST_F(UnixSocket, SaysThatAFullSocketIsFull) {
  ASSERT_TRUE(set_nonblocking(near_.get()));
  const std::string piece(1024, 'x');
  Status sent;
  for (int i = 0; i < 100'000 && sent; ++i) sent = send_packet(near_.get(), piece);
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().reason, Reason::Overloaded);
}

TEST_F(UnixSocket, GivesUpWaitingAfterTheTimeout) {
  const auto packet = recv_packet_within(far_.get(), std::chrono::milliseconds(1));
  ASSERT_FALSE(packet);
  EXPECT_EQ(packet.error().detail, "receive: no answer in time");
}

}  // namespace
}  // namespace sallyport::os
