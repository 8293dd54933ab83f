#include "os/unix_socket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>

namespace sallyport::os {

namespace {

constexpr std::size_t kControlBytes = CMSG_SPACE(sizeof(int) * kMaxPacketFds);

// Bytes of the next packet; a peer that is gone without a word has sent an empty one. -1: errno says why.
// ECONNRESET comes once, and before what the peer has sent: it went without reading all that was sent to it.
ssize_t next_packet_bytes(int socket) {
  for (;;) {
    const ssize_t got = ::recv(socket, nullptr, 0, MSG_PEEK | MSG_TRUNC);
    if (got >= 0 || (errno != EINTR && errno != ECONNRESET)) return got;
  }
}

}  // namespace

std::vector<Fd> take_descriptors(msghdr& message) {
  std::vector<Fd> fds;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
      fds.emplace_back(fd);
    }
  }
  return fds;
}

Result<std::pair<Fd, Fd>> socket_pair(SocketKind kind) {
  const int type = kind == SocketKind::Packet ? SOCK_SEQPACKET : SOCK_STREAM;
  int ends[2];
  if (::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) != 0) {
    return fail_errno(Reason::Internal, "socketpair");
  }
  return std::pair<Fd, Fd>(Fd(ends[0]), Fd(ends[1]));
}

Status send_packet(int socket, std::string_view bytes, std::span<const int> fds) {
  if (bytes.empty()) return fail(Reason::Internal, "send: an empty packet");
  if (bytes.size() > kMaxPacketBytes) return fail(Reason::Internal, "send: the packet is too large");
  if (fds.size() > kMaxPacketFds) return fail(Reason::Internal, "send: too many descriptors");

  std::string copy(bytes);  // iovec wants a pointer to non-const
  iovec part{copy.data(), copy.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[kControlBytes] = {};
  if (!fds.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  }
  while (::sendmsg(socket, &message, MSG_NOSIGNAL) < 0) {
    if (errno == EINTR) continue;
    if (would_block(errno)) return fail(Reason::Overloaded, "send: the socket is full");
    const bool gone = errno == EPIPE || errno == ECONNRESET;
    return fail_errno(gone ? Reason::SessionEnded : Reason::Internal, "send");
  }
  return {};
}

Result<std::optional<Packet>> recv_packet(int socket) {
  // Asked first, so that a packet takes just the room that it needs.
  const ssize_t bytes = next_packet_bytes(socket);
  if (bytes < 0 && would_block(errno)) return std::optional<Packet>();
  if (bytes < 0) return fail_errno(Reason::Internal, "receive");
  Packet packet;
  if (bytes == 0) {
    packet.end = true;
    return packet;
  }
  if (static_cast<std::size_t>(bytes) > kMaxPacketBytes) {
    return fail(Reason::Internal, "receive: the packet is too large");
  }
  packet.bytes.resize(static_cast<std::size_t>(bytes));
  iovec part{packet.bytes.data(), packet.bytes.size()};
  alignas(cmsghdr) char control[kControlBytes];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  // It lies there: this neither waits nor is interrupted.
  if (::recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != bytes) return fail_errno(Reason::Internal, "receive");
  packet.fds = take_descriptors(message);
  if ((message.msg_flags & MSG_CTRUNC) != 0) return fail(Reason::Internal, "receive: too many descriptors");
  return packet;
}

Result<Packet> recv_packet_within(int socket, std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    auto readable = wait_readable(socket, std::max(left, std::chrono::milliseconds(0)));
    if (!readable) return fail(std::move(readable));
    if (!*readable) return fail(Reason::Internal, "receive: no answer in time");
    auto packet = recv_packet(socket);
    if (!packet) return fail(std::move(packet));
    if (*packet) return std::move(**packet);
  }
}

Result<bool> wait_readable(int fd, std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  auto left = timeout;
  for (;;) {
    pollfd entry{fd, POLLIN, 0};
    const int count = ::poll(&entry, 1, static_cast<int>(left.count()));
    if (count >= 0) return count > 0;
    if (errno != EINTR) return fail_errno(Reason::Internal, "poll");
    left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() < 0) return false;
  }
}

Status set_nonblocking(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) {
    return fail_errno(Reason::Internal, "fcntl O_NONBLOCK");
  }
  return {};
}

bool would_block(int error) {
  return error == EAGAIN || error == EWOULDBLOCK;
}

}  // namespace sallyport::os
