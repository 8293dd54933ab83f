// Fakes and connections for this room's tests.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "os/endpoint.h"
#include "upstream/exchange.h"

namespace sallyport::gate::testing {

// Reaches nothing, and counts how often it was asked to.
class FakeOpener final : public upstream::Opener {
 public:
  net::Task<Result<std::unique_ptr<upstream::Exchange>>> open(upstream::Request /*request*/) override {
    ++opened;
    co_return fail(Reason::UpstreamUnreachable, "fake");
  }

  int opened = 0;
};

inline os::Endpoint endpoint(const char* address, std::uint16_t port) {
  return *os::endpoint_from(address, port);
}

// Blocking, but no longer than a test may take.
inline void bound_waiting(int socket) {
  const timeval limit{.tv_sec = 30, .tv_usec = 0};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

// On a port of the kernel's choice.
inline Fd loopback_socket(int type) {
  Fd socket(::socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const auto address = os::socket_address(endpoint("127.0.0.1", 0));
  if (::bind(socket.get(), address.get(), address.length) != 0) return {};
  if (type == SOCK_STREAM && ::listen(socket.get(), 1024) != 0) return {};
  return socket;
}
inline os::Endpoint bound_address(int socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length);
  return *os::endpoint_from(address);
}
inline Fd connect_to(const os::Endpoint& server, int type = SOCK_STREAM) {
  Fd socket(::socket(AF_INET, type | SOCK_CLOEXEC, 0));
  bound_waiting(socket.get());
  const auto address = os::socket_address(server);
  if (::connect(socket.get(), address.get(), address.length) != 0) return {};
  return socket;
}
// The server's end and the client's.
inline std::pair<Fd, Fd> tcp_pair() {
  const Fd listener = loopback_socket(SOCK_STREAM);
  Fd client = connect_to(bound_address(listener.get()));
  return {Fd(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)), std::move(client)};
}

inline void send_text(int socket, std::string_view text) {
  static_cast<void>(::send(socket, text.data(), text.size(), MSG_NOSIGNAL));
}
struct Received {
  std::string bytes;
  int error = 0;  // 0: an orderly end
};
inline Received receive_all(int socket) {
  Received received;
  char buffer[4096];
  while (true) {
    const ssize_t got = ::recv(socket, buffer, sizeof buffer, 0);
    if (got < 0) received.error = errno;
    if (got <= 0) return received;
    received.bytes.append(buffer, static_cast<std::size_t>(got));
  }
}

}  // namespace sallyport::gate::testing
