#include "os/listener.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <utility>

namespace sallyport::os {
namespace {

Status set_option(int socket, int level, int option) {
  const int on = 1;
  if (::setsockopt(socket, level, option, &on, sizeof on) != 0) {
    return fail_errno(Reason::Internal, "setsockopt");
  }
  return {};
}

Status set_options(int socket, sa_family_t family, ListenerKind kind) {
  if (family == AF_INET6) {
    if (auto done = set_option(socket, IPPROTO_IPV6, IPV6_V6ONLY); !done) return done;
  }
  switch (kind) {
    case ListenerKind::Tcp:
      return set_option(socket, SOL_SOCKET, SO_REUSEADDR);
    case ListenerKind::Udp:
      return family == AF_INET6 ? set_option(socket, IPPROTO_IPV6, IPV6_RECVPKTINFO)
                                : set_option(socket, IPPROTO_IP, IP_PKTINFO);
  }
  return fail(Reason::Internal, "no such kind of listener");
}

}  // namespace

Result<Listener> open_listener(const Endpoint& where, ListenerKind kind) {
  const int type = kind == ListenerKind::Tcp ? SOCK_STREAM : SOCK_DGRAM;
  Fd socket(::socket(where.family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return fail_errno(Reason::Internal, "socket for " + where.text());
  if (auto done = set_options(socket.get(), where.family, kind); !done) return fail(std::move(done));
  const SocketAddress address = socket_address(where);
  if (::bind(socket.get(), address.get(), address.length) != 0) {
    return fail_errno(Reason::Internal, "bind " + where.text());
  }
  if (kind == ListenerKind::Tcp && ::listen(socket.get(), kDoorBacklog) != 0) {
    return fail_errno(Reason::Internal, "listen " + where.text());
  }
  auto bound = local_endpoint(socket.get());
  if (!bound) return fail(std::move(bound));
  return Listener{.fd = std::move(socket), .kind = kind, .family = where.family, .port = bound->port};
}

}  // namespace sallyport::os
