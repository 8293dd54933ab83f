#include "os/packet_listener.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "os/peer.h"

namespace sallyport::os {
namespace {

// One is expected. More would not be who they should be.
constexpr int kBacklog = 4;

Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return fail(Reason::Internal, path + " is too long for the path of a socket");
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

}  // namespace

Result<PacketListener> PacketListener::open(const std::string& path) {
  auto address = address_of(path);
  if (!address) return fail(std::move(address));
  Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return fail_errno(Reason::Internal, "socket");
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0) {
    return fail_errno(Reason::Internal, "bind " + path);
  }
  PacketListener listener(path, std::move(socket));
  if (::chmod(path.c_str(), 0666) != 0) return fail_errno(Reason::Internal, "chmod " + path);
  if (::listen(listener.fd(), kBacklog) != 0) return fail_errno(Reason::Internal, "listen at " + path);
  return listener;
}

PacketListener::~PacketListener() {
  if (socket_) ::unlink(path_.c_str());
}

Result<std::optional<PacketListener::Accepted>> PacketListener::accept() const {
  Accepted accepted;
  accepted.connection.reset(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!accepted.connection) {
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ECONNABORTED || errno == EINTR)
      return std::optional<Accepted>();
    return fail_errno(Reason::Internal, "accept at " + path_);
  }
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(accepted.connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return fail_errno(Reason::Internal, "SO_PEERCRED");
  }
  accepted.pid = peer.pid;
  auto pidfd = open_peer_process(accepted.connection.get());
  if (!pidfd) return fail(std::move(pidfd));
  accepted.pidfd = std::move(*pidfd);
  return std::optional(std::move(accepted));
}

Result<Fd> connect_packets(const std::string& path) {
  auto address = address_of(path);
  if (!address) return fail(std::move(address));
  Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket) return fail_errno(Reason::Internal, "socket");
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0) {
    return fail_errno(Reason::Internal, "connect to " + path);
  }
  return socket;
}

}  // namespace sallyport::os
