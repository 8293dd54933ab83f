// IP addresses and their classes by the IANA special-purpose address registries, and some that are not in
// them.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sallyport::policy {

enum class Family : std::uint8_t { V4, V6 };

struct IpAddress {
  Family family = Family::V4;
  std::array<std::uint8_t, 16> bytes{};  // network order; V4 uses the first four, the rest is zero

  // Canonical spellings only: dotted quad without leading zeros, RFC 4291 for V6, no zone, no brackets.
  static std::optional<IpAddress> parse(std::string_view text);
  std::string str() const;
  auto operator<=>(const IpAddress&) const = default;
};

enum class AddressClass : std::uint8_t {
  Global,     // may be dialled
  Private,    // RFC 1918, unique local, CGNAT: only with the host's allow_private
  Forbidden,  // loopback, link-local, metadata, multicast, translation prefixes, documentation...: only by
              // exact address
};

AddressClass classify(const IpAddress& address);

// "IP" or "IP:PORT" ("[V6]:PORT") in an operator's file: this very address is dialled, and nothing is
// resolved.
struct PinnedAddress {
  IpAddress address;
  std::optional<std::uint16_t> port;

  bool operator==(const PinnedAddress&) const = default;
};
std::optional<PinnedAddress> parse_pinned_address(std::string_view text);

inline constexpr std::size_t kMaxResolvers = 8;  // name servers in an operator's file

}  // namespace sallyport::policy
