// The pre-flight checks of the network: nothing is reachable before there are doors, and afterwards whatever
// answers is our door.

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <span>

#include "base/text.h"
#include "os/links.h"
#include "os/unix_socket.h"
#include "sandbox/preflight.h"

namespace sallyport::sandbox {
namespace {

using Clock = std::chrono::steady_clock;

// What the kernel says of an address to which there is no way. Not ECONNREFUSED, and not EPERM either: there
// something answered, or a rule stands where no way should be.
constexpr int kNoWay[] = {ENETUNREACH, EHOSTUNREACH, EADDRNOTAVAIL, ENETDOWN, EAFNOSUPPORT};

// connect(2) without waiting: 0, EINPROGRESS, or why not.
int begin_connect(int socket, const os::Endpoint& endpoint) {
  const os::SocketAddress address = os::socket_address(endpoint);
  return ::connect(socket, address.get(), address.length) == 0 ? 0 : errno;
}

Leak must_have_no_way(const os::Endpoint& endpoint, int type) {
  const Fd socket(::socket(endpoint.family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return std::nullopt;  // a kernel without IPv6
  const int error = begin_connect(socket.get(), endpoint);
  if (std::ranges::find(kNoWay, error) != std::end(kNoWay)) return std::nullopt;
  return leak(Check::Unreachable, fmt::format("there is a way to {} {} before any door is open ({})",
                                              type == SOCK_STREAM ? "tcp" : "udp", endpoint.text(),
                                              error == 0 ? "connected" : errno_text(error)));
}

enum class Answer { Nobody, Door, Other };

bool wait_for(int socket, short events, Clock::time_point end) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
  pollfd waiting{socket, events, 0};
  return left.count() > 0 && ::poll(&waiting, 1, static_cast<int>(left.count())) > 0;
}

std::string read_answer(int socket, std::size_t bytes, Clock::time_point end) {
  std::string answer(bytes, '\0');
  std::size_t done = 0;
  while (done < bytes && wait_for(socket, POLLIN, end)) {
    const ssize_t got = ::recv(socket, answer.data() + done, bytes - done, 0);
    if (got <= 0) break;
    done += static_cast<std::size_t>(got);
  }
  answer.resize(done);
  return answer;
}

Answer who_answers(const os::Endpoint& endpoint, const Phase2& phase) {
  const auto end = Clock::now() + kAnswerTimeout;
  const Fd socket(::socket(endpoint.family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return Answer::Nobody;
  int error = begin_connect(socket.get(), endpoint);
  if (error == EINPROGRESS) {
    if (!wait_for(socket.get(), POLLOUT, end)) return Answer::Nobody;
    socklen_t length = sizeof error;
    ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  }
  if (error != 0) return Answer::Nobody;
  const ssize_t sent = ::send(socket.get(), phase.probe_line.data(), phase.probe_line.size(), MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(phase.probe_line.size())) return Answer::Other;
  const bool door = read_answer(socket.get(), phase.door_line.size(), end) == phase.door_line;
  return door ? Answer::Door : Answer::Other;
}

// Nobody need hear it: the warden asks its decoys afterwards.
void send_datagram(const os::Endpoint& endpoint) {
  const Fd socket(::socket(endpoint.family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return;
  const os::SocketAddress address = os::socket_address(endpoint);
  constexpr std::string_view kText = "sallyport pre-flight";
  static_cast<void>(
      ::sendto(socket.get(), kText.data(), kText.size(), MSG_NOSIGNAL, address.get(), address.length));
}

}  // namespace

Leak check_interfaces() {
  const auto socket = os::open_route_socket(0);
  if (!socket) return leak(Check::Interfaces, socket.error().detail);
  const auto links = os::list_links(socket->get());
  if (!links) return leak(Check::Interfaces, links.error().detail);
  const auto only = os::only_loopback(*links);
  if (!only) return leak(Check::Interfaces, only.error().detail);
  return std::nullopt;
}

Leak check_unreachable(const std::vector<os::Endpoint>& addresses, const DecoyList& decoys) {
  const std::span<const os::Endpoint> groups[] = {addresses, decoys.tcp, decoys.udp};
  for (const auto& group : groups) {
    for (const os::Endpoint& endpoint : group) {
      for (const int type : {static_cast<int>(SOCK_STREAM), static_cast<int>(SOCK_DGRAM)}) {
        if (auto found = must_have_no_way(endpoint, type)) return found;
      }
    }
  }
  return std::nullopt;
}

Leak check_abstract_socket(const std::string& name) {
  const Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  if (!socket || name.empty() || name.size() >= sizeof address.sun_path) {
    return leak(Check::AbstractSocket, "the abstract socket cannot be tried");
  }
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), length) == 0 ||
      errno != ECONNREFUSED) {
    return leak(Check::AbstractSocket, "the host's abstract Unix sockets are in reach");
  }
  return std::nullopt;
}

Leak check_door(const Phase2& phase) {
  for (const os::Endpoint& endpoint : phase.must_be_door) {
    switch (who_answers(endpoint, phase)) {
      case Answer::Door:
        break;
      case Answer::Nobody:
        return leak(Check::Door, "the door does not answer at " + endpoint.text());
      case Answer::Other:
        return leak(Check::Door, "not the door answers at " + endpoint.text());
    }
  }
  for (const os::Endpoint& endpoint : phase.decoys.tcp) {
    if (who_answers(endpoint, phase) == Answer::Other) {
      return leak(Check::Door, "not the door answers at " + endpoint.text());
    }
  }
  for (const os::Endpoint& endpoint : phase.decoys.udp) send_datagram(endpoint);
  return check_abstract_socket(phase.decoys.abstract_name);
}

}  // namespace sallyport::sandbox
