#include "sandbox/decoys.h"

#include <ifaddrs.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <memory>

#include "base/random.h"
#include "os/endpoint.h"
#include "os/netns.h"

namespace sallyport::sandbox {
namespace {

// The host's addresses with port 0, loopback first.
std::vector<os::SocketAddress> host_addresses() {
  std::vector<os::SocketAddress> found;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return found;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owned(list, ::freeifaddrs);
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr) continue;
    const sa_family_t family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    os::SocketAddress address;
    address.length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    std::memcpy(&address.storage, entry->ifa_addr, address.length);
    // A link-local address means something only together with an interface, and none is inside.
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&address.storage);
    if (family == AF_INET6 && v6->sin6_scope_id != 0) continue;
    found.push_back(address);
  }
  const auto is_loopback = [](const os::SocketAddress& address) {
    const auto endpoint = os::endpoint_from(address.storage);
    const std::string text = endpoint ? endpoint->address_text() : "";
    return text == "127.0.0.1" || text == "::1";
  };
  std::ranges::stable_partition(found, is_loopback);
  if (found.size() > Decoys::kMaxAddresses) found.resize(Decoys::kMaxAddresses);
  return found;
}

struct Bound {
  Fd fd;
  os::Endpoint endpoint;
};

// Bound, and listening when `type` is SOCK_STREAM; nothing when the address cannot be had.
std::optional<Bound> listen_on(os::SocketAddress address, int type) {
  Fd fd(::socket(address.storage.ss_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd || ::bind(fd.get(), address.get(), address.length) != 0) return std::nullopt;
  if (type == SOCK_STREAM && ::listen(fd.get(), 1) != 0) return std::nullopt;
  os::SocketAddress bound;
  bound.length = sizeof bound.storage;
  if (::getsockname(fd.get(), bound.get(), &bound.length) != 0) return std::nullopt;
  const auto endpoint = os::endpoint_from(bound.storage);
  if (!endpoint) return std::nullopt;
  return Bound{std::move(fd), *endpoint};
}

// Those on a door's port are kept until another was found, or the kernel might choose the same again.
std::optional<Bound> listen_beside_doors(const os::SocketAddress& address, int type) {
  constexpr std::size_t kMaxTries = 32;  // more than there are doors
  std::vector<Bound> unusable;
  while (unusable.size() < kMaxTries) {
    auto bound = listen_on(address, type);
    if (!bound || !may_be_a_door(bound->endpoint.port)) return bound;
    unusable.push_back(*std::move(bound));
  }
  return std::nullopt;
}

Result<Fd> listen_on_abstract(const std::string& name) {
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return fail_errno(Reason::Internal, "socket");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), std::min(name.size(), sizeof address.sun_path - 1));
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0 ||
      ::listen(fd.get(), 1) != 0) {
    return fail_errno(Reason::Internal, "listen on an abstract socket");
  }
  return fd;
}

}  // namespace

bool may_be_a_door(std::uint16_t port) {
  return (port >= os::kFirstDoorPort && port <= os::kLastDoorPort) ||
         std::ranges::find(os::kDirectPorts, port) != std::end(os::kDirectPorts);
}

Result<Decoys> Decoys::open() {
  Decoys decoys;
  for (const os::SocketAddress& address : host_addresses()) {
    for (const int type : {SOCK_STREAM, SOCK_DGRAM}) {
      auto listener = listen_beside_doors(address, type);
      if (!listener) continue;
      const bool tcp = type == SOCK_STREAM;
      auto& [fd, endpoint] = *listener;
      decoys.sockets_.push_back({std::move(fd), (tcp ? "tcp " : "udp ") + endpoint.text()});
      (tcp ? decoys.list_.tcp : decoys.list_.udp).push_back(endpoint);
    }
  }
  if (decoys.list_.tcp.empty()) return fail(Reason::Internal, "no address of the host takes a decoy");

  decoys.list_.abstract_name = "sallyport-decoy-" + random_hex(16);
  auto abstract = listen_on_abstract(decoys.list_.abstract_name);
  if (!abstract) return fail(std::move(abstract));
  decoys.sockets_.push_back({std::move(*abstract), "the abstract Unix socket"});
  return decoys;
}

std::optional<std::string> Decoys::seen() const {
  for (const Socket& socket : sockets_) {
    pollfd waiting{socket.fd.get(), POLLIN, 0};
    if (::poll(&waiting, 1, 0) > 0) return socket.text;
  }
  return std::nullopt;
}

}  // namespace sallyport::sandbox
