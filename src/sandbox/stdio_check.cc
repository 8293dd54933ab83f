#include "sandbox/stdio_check.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstddef>
#include <string_view>

namespace sallyport::sandbox {
namespace {

int socket_option(int fd, int option) {
  int value = -1;
  socklen_t size = sizeof value;
  return ::getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
}

// Where a service's standard output leads that systemd started: lines go in there, and nothing else.
constexpr std::string_view kJournal = "/run/systemd/journal/stdout";

// One end of a socketpair(2), as ssh and node.js have for their children, or the journal: it leads to its
// maker and nowhere else. Every other socket can be connected anew, in the network namespace in which it was
// made; and a connection to a named one speaks with the caller's uid.
bool leads_nowhere_else(int fd) {
  const int type = socket_option(fd, SO_TYPE);
  if (socket_option(fd, SO_DOMAIN) != AF_UNIX || (type != SOCK_STREAM && type != SOCK_SEQPACKET))
    return false;
  sockaddr_un peer{};
  socklen_t size = sizeof peer;
  const bool connected = ::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0;
  if (!connected) return false;
  return size <= offsetof(sockaddr_un, sun_path) || kJournal == peer.sun_path;
}

}  // namespace

std::optional<std::string> why_way_out(int fd) {
  struct stat status{};
  if (::fstat(fd, &status) != 0) return "is not open";
  if (S_ISDIR(status.st_mode)) return "is a folder outside the sandbox";
  if (S_ISSOCK(status.st_mode) && !leads_nowhere_else(fd)) {
    return "is a socket of the host's network, or leads to a named one";
  }
  return std::nullopt;
}

}  // namespace sallyport::sandbox
