#include "os/endpoint.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>

#include "base/text.h"

namespace sallyport::os {

namespace {

// SO_ORIGINAL_DST and IP6T_SO_ORIGINAL_DST; the kernel's headers of them clash with the C library's.
constexpr int kOriginalDestination = 80;

Result<Endpoint> checked(const sockaddr_storage& address) {
  if (const auto endpoint = endpoint_from(address)) return *endpoint;
  return fail(Reason::Internal, "a connection that is neither IPv4 nor IPv6");
}

}  // namespace

Result<Endpoint> local_endpoint(int socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return fail_errno(Reason::Internal, "getsockname");
  }
  return checked(address);
}

Result<Endpoint> peer_endpoint(int socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return fail_errno(Reason::ClientClosed, "getpeername");
  }
  return checked(address);
}

bool Endpoint::is_loopback() const {
  if (family == AF_INET) return address[0] == 127;
  const auto lead = std::span(address).first<15>();
  return std::ranges::all_of(lead, [](std::uint8_t byte) { return byte == 0; }) && address[15] == 1;
}

std::optional<Endpoint> endpoint_from_text(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto port = parse_decimal(text.substr(colon + 1), UINT16_MAX);
  if (!port) return std::nullopt;
  std::string_view address = text.substr(0, colon);
  const bool is_bracketed = address.starts_with('[') && address.ends_with(']');
  if (is_bracketed) address = address.substr(1, address.size() - 2);
  const auto endpoint = endpoint_from(std::string(address).c_str(), static_cast<std::uint16_t>(*port));
  if (!endpoint || (endpoint->family == AF_INET6) != is_bracketed) return std::nullopt;
  return endpoint;
}

std::string Endpoint::address_text() const {
  char text[INET6_ADDRSTRLEN] = {};
  return ::inet_ntop(family, address.data(), text, sizeof text) != nullptr ? text : "?";
}

std::string Endpoint::text() const {
  const std::string host = family == AF_INET6 ? "[" + address_text() + "]" : address_text();
  return host + ":" + std::to_string(port);
}

std::optional<Endpoint> endpoint_from(const sockaddr_storage& address) {
  Endpoint endpoint;
  endpoint.family = address.ss_family;
  if (address.ss_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &address, sizeof v4);
    std::memcpy(endpoint.address.data(), &v4.sin_addr, sizeof v4.sin_addr);
    endpoint.port = ntohs(v4.sin_port);
    return endpoint;
  }
  if (address.ss_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, &address, sizeof v6);
    std::memcpy(endpoint.address.data(), &v6.sin6_addr, sizeof v6.sin6_addr);
    endpoint.port = ntohs(v6.sin6_port);
    return endpoint;
  }
  return std::nullopt;
}

std::optional<Endpoint> endpoint_from(const char* address, std::uint16_t port) {
  Endpoint endpoint;
  endpoint.port = port;
  for (const int family : {AF_INET, AF_INET6}) {
    endpoint.family = static_cast<sa_family_t>(family);
    if (::inet_pton(family, address, endpoint.address.data()) == 1) return endpoint;
  }
  return std::nullopt;
}

SocketAddress socket_address(const Endpoint& endpoint) {
  SocketAddress result;
  if (endpoint.family == AF_INET) {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(endpoint.port);
    std::memcpy(&v4.sin_addr, endpoint.address.data(), sizeof v4.sin_addr);
    std::memcpy(&result.storage, &v4, sizeof v4);
    result.length = sizeof v4;
  } else {
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(endpoint.port);
    std::memcpy(&v6.sin6_addr, endpoint.address.data(), sizeof v6.sin6_addr);
    std::memcpy(&result.storage, &v6, sizeof v6);
    result.length = sizeof v6;
  }
  return result;
}

Result<std::optional<Endpoint>> original_destination(int connection, DoorMode mode) {
  auto local = local_endpoint(connection);
  if (!local) return fail(std::move(local));
  if (mode == DoorMode::Direct) return std::optional<Endpoint>(*local);

  sockaddr_storage address{};
  socklen_t length = sizeof address;
  const int level = local->family == AF_INET6 ? int{IPPROTO_IPV6} : int{IPPROTO_IP};
  if (::getsockopt(connection, level, kOriginalDestination, &address, &length) != 0) {
    // The kernel keeps no record of what was not redirected.
    if (errno == ENOENT) return std::optional<Endpoint>();
    return fail_errno(Reason::Internal, "getsockopt SO_ORIGINAL_DST");
  }
  auto original = checked(address);
  if (!original) return fail(std::move(original));
  if (*original == *local) return std::optional<Endpoint>();
  return std::optional<Endpoint>(*original);
}

}  // namespace sallyport::os
