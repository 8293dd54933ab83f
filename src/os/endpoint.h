// An IP address with a port, as the kernel's socket calls give it, and where a redirected connection was
// going.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace sallyport::os {

struct Endpoint {
  sa_family_t family = AF_INET;            // AF_INET or AF_INET6
  std::array<std::uint8_t, 16> address{};  // network order; the first 4 bytes for AF_INET, the rest zero
  std::uint16_t port = 0;                  // host order

  // "192.0.2.1:443", "[2001:db8::1]:443".
  std::string text() const;
  // The address alone.
  std::string address_text() const;
  // 127.0.0.0/8 or ::1: reached from this host alone.
  bool is_loopback() const;
  bool operator==(const Endpoint&) const = default;
};

// nullopt for another family than the two.
std::optional<Endpoint> endpoint_from(const sockaddr_storage& address);
// From a numeric address as inet_pton(3) reads it.
std::optional<Endpoint> endpoint_from(const char* address, std::uint16_t port);

// "192.0.2.1:443", "[2001:db8::1]:443", as text() writes it. The port may be 0.
std::optional<Endpoint> endpoint_from_text(std::string_view text);

// The two ends of a socket.
Result<Endpoint> local_endpoint(int socket);
Result<Endpoint> peer_endpoint(int socket);

// For bind(2), connect(2) and getsockname(2).
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};
SocketAddress socket_address(const Endpoint& endpoint);

// How a sandbox's connections reach the doors.
enum class DoorMode {
  Redirect,  // nftables sends every port to one door
  Direct,    // without nftables: a door on each port that has one
};

// Where the client of an accepted TCP connection was going; nullopt when it addressed the door itself (in
// Redirect mode; Direct doors are addressed by everyone).
Result<std::optional<Endpoint>> original_destination(int connection, DoorMode mode);

}  // namespace sallyport::os
