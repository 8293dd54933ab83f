// Messages between our own processes on one host: pairs of Unix sockets, and packets that carry descriptors.
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace sallyport::os {

// The largest packet that is sent or received.
inline constexpr std::size_t kMaxPacketBytes = 64 * 1024;
// The most descriptors in one packet.
inline constexpr std::size_t kMaxPacketFds = 16;

enum class SocketKind { Packet, Stream };  // SOCK_SEQPACKET, SOCK_STREAM

struct Packet {
  std::string bytes;
  std::vector<Fd> fds;  // close-on-exec
  bool end = false;     // the peer is gone; bytes and fds are empty
};

// Both ends close-on-exec and blocking.
Result<std::pair<Fd, Fd>> socket_pair(SocketKind kind);

// Every descriptor that recvmsg(2) brought, into ownership: first of all, so that none leaks on an error
// path.
std::vector<Fd> take_descriptors(msghdr& message);

// One packet on a SOCK_SEQPACKET socket, whole or not at all. The descriptors stay the caller's. An empty
// packet is refused: the receiver could not tell it from the end. Reason::Overloaded when a non-blocking
// socket is full, Reason::SessionEnded when the peer is gone.
Status send_packet(int socket, std::string_view bytes, std::span<const int> fds = {});

// The next packet, read by one thread alone; nullopt when a non-blocking socket has none. A packet over the
// limits above is an error, after which the socket is of no more use; none of its descriptors stays open.
Result<std::optional<Packet>> recv_packet(int socket);

// The same, waiting for at most `timeout`; that it passed is an error.
Result<Packet> recv_packet_within(int socket, std::chrono::milliseconds timeout);

// True when `fd` became readable (or its peer went) within `timeout`.
Result<bool> wait_readable(int fd, std::chrono::milliseconds timeout);

Status set_nonblocking(int fd);

// That errno of a non-blocking descriptor which means: not now.
bool would_block(int error);

}  // namespace sallyport::os
