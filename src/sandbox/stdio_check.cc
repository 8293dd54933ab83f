#include "sandbox/stdio_check.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstddef>

namespace sallyport::sandbox {
namespace {

int socket_option(int fd, int option) {
  int value = -1;
  socklen_t size = sizeof value;
  return ::getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
}

// One end of a socketpair(2), as ssh and node.js have for their children: it leads to its maker and nowhere
// else. Every other socket can be connected anew, in the network namespace in which it was made; and a
// connection to a named one speaks with the caller's uid.
bool is_end_of_a_pair(int fd) {
  const int type = socket_option(fd, SO_TYPE);
  if (socket_option(fd, SO_DOMAIN) != AF_UNIX || (type != SOCK_STREAM && type != SOCK_SEQPACKET))
    return false;
  sockaddr_un peer{};
  socklen_t size = sizeof peer;
  const bool connected = ::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0;
  return connected && size <= offsetof(sockaddr_un, sun_path);
}

}  // namespace

std::optional<std::string> why_way_out(int fd) {
  struct stat status{};
  if (::fstat(fd, &status) != 0) return "is not open";
  if (S_ISDIR(status.st_mode)) return "is a folder outside the sandbox";
  if (S_ISSOCK(status.st_mode) && !is_end_of_a_pair(fd)) {
    return "is a socket of the host's network, or leads to a named one";
  }
  return std::nullopt;
}

}  // namespace sallyport::sandbox
