#include "policy/address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <span>

#include "base/text.h"

namespace sallyport::policy {
namespace {

using enum AddressClass;

constexpr std::size_t kV4Bits = 32;
constexpr std::size_t kV6Bits = 128;

struct Range {
  std::string_view prefix;  // as IpAddress::parse reads it
  std::size_t bits;
  AddressClass kind;
};

// The first range that holds the address decides, so exceptions stand before what they are taken from.
// Sources: the IANA special-purpose and multicast registries (the registries, not RFC 6890's stale table),
// and the addresses at which clouds answer with credentials.
constexpr std::array kRangesV4{
    // Metadata services inside ranges that are otherwise private or public.
    Range{"100.100.100.200", 32, Forbidden},  // Alibaba
    Range{"168.63.129.16", 32, Forbidden},    // Azure

    Range{"10.0.0.0", 8, Private},           Range{"172.16.0.0", 12, Private},
    Range{"192.168.0.0", 16, Private},       Range{"100.64.0.0", 10, Private},  // carrier-grade NAT, RFC 6598

    Range{"0.0.0.0", 8, Forbidden},          Range{"127.0.0.0", 8, Forbidden},
    Range{"169.254.0.0", 16, Forbidden},   // link-local; metadata of AWS, GCP, Azure, OCI, ECS, EKS
    Range{"192.0.0.0", 24, Forbidden},     // protocol assignments; metadata of OCI's old address
    Range{"192.0.2.0", 24, Forbidden},     // documentation
    Range{"192.31.196.0", 24, Forbidden},  // AS112
    Range{"192.52.193.0", 24, Forbidden},  // AMT
    Range{"192.88.99.0", 24, Forbidden},   // 6to4 relay, 6a44
    Range{"192.175.48.0", 24, Forbidden},  // AS112
    Range{"198.18.0.0", 15, Forbidden},    // benchmarking; our own synthetic answers
    Range{"198.51.100.0", 24, Forbidden},  // documentation
    Range{"203.0.113.0", 24, Forbidden},   // documentation
    Range{"224.0.0.0", 4, Forbidden},      // multicast
    Range{"240.0.0.0", 4, Forbidden},      // reserved, and the broadcast address
};

constexpr std::array kRangesV6{
    // Metadata services inside fc00::/7.
    Range{"fd00:ec2::", 32, Forbidden},           // AWS
    Range{"fd20:ce::254", 128, Forbidden},        // GCP
    Range{"fd00:c1::a9fe:a9fe", 128, Forbidden},  // OCI
    Range{"fd00:42::42", 128, Forbidden},         // Scaleway
    Range{"fc00::", 7, Private},                  // unique local, RFC 4193

    Range{"2001::", 23, Forbidden},          // protocol assignments: Teredo, ORCHID, benchmarking...
    Range{"2001:db8::", 32, Forbidden},      // documentation
    Range{"2002::", 16, Forbidden},          // 6to4: hides an IPv4 address
    Range{"2620:4f:8000::", 48, Forbidden},  // AS112
    Range{"3fff::", 20, Forbidden},          // documentation
    Range{"2000::", 3, Global},
    // Whatever is left: unspecified, loopback, IPv4-compatible and -mapped, SIIT, NAT64, discard-only,
    // segment routing, link-local, site-local, multicast, unassigned.
    Range{"::", 0, Forbidden},
};

bool shares_prefix(const IpAddress& a, const IpAddress& b, std::size_t bits) {
  const std::size_t whole = bits / 8;
  if (!std::equal(a.bytes.begin(), a.bytes.begin() + static_cast<std::ptrdiff_t>(whole), b.bytes.begin())) {
    return false;
  }
  const std::size_t rest = bits % 8;
  if (rest == 0) return true;
  const unsigned mask = 0xffU << (8 - rest) & 0xffU;
  return ((a.bytes.at(whole) ^ b.bytes.at(whole)) & mask) == 0;
}

struct ParsedRange {
  IpAddress prefix;
  std::size_t bits;
  AddressClass kind;
};

template <std::size_t Count>
std::array<ParsedRange, Count> parsed(const std::array<Range, Count>& ranges) {
  std::array<ParsedRange, Count> result{};
  std::ranges::transform(ranges, result.begin(), [](const Range& range) {
    return ParsedRange{IpAddress::parse(range.prefix).value(), range.bits, range.kind};
  });
  return result;
}

AddressClass first_match(std::span<const ParsedRange> ranges, const IpAddress& address,
                         AddressClass otherwise) {
  const auto found = std::ranges::find_if(
      ranges, [&](const ParsedRange& range) { return shares_prefix(range.prefix, address, range.bits); });
  return found == ranges.end() ? otherwise : found->kind;
}

}  // namespace

std::optional<IpAddress> IpAddress::parse(std::string_view text) {
  // inet_pton (unlike inet_aton and getaddrinfo) reads exactly the spellings that the header names. A NUL
  // would end its text early.
  if (text.size() >= INET6_ADDRSTRLEN || text.find('\0') != std::string_view::npos) return std::nullopt;
  const std::string terminated(text);
  IpAddress address;
  address.family = text.find(':') == std::string_view::npos ? Family::V4 : Family::V6;
  const int family = address.family == Family::V4 ? AF_INET : AF_INET6;
  if (::inet_pton(family, terminated.c_str(), address.bytes.data()) != 1) return std::nullopt;
  return address;
}

std::string IpAddress::str() const {
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(family == Family::V4 ? AF_INET : AF_INET6, bytes.data(), text.data(), text.size());
  return text.data();
}

AddressClass classify(const IpAddress& address) {
  static_assert(std::ranges::all_of(kRangesV4, [](const Range& range) { return range.bits <= kV4Bits; }));
  static_assert(std::ranges::all_of(kRangesV6, [](const Range& range) { return range.bits <= kV6Bits; }));
  static const auto ranges_v4 = parsed(kRangesV4);
  static const auto ranges_v6 = parsed(kRangesV6);
  switch (address.family) {
    case Family::V4:
      return first_match(ranges_v4, address, Global);
    case Family::V6:
      return first_match(ranges_v6, address, Forbidden);
  }
  return Forbidden;
}

std::optional<PinnedAddress> parse_pinned_address(std::string_view text) {
  if (const auto address = IpAddress::parse(text)) return PinnedAddress{*address, std::nullopt};
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  const bool bracketed = host.starts_with('[') && host.ends_with(']');
  if (bracketed) host = host.substr(1, host.size() - 2);
  const auto address = IpAddress::parse(host);
  const auto port = parse_decimal(text.substr(colon + 1), UINT16_MAX);
  if (!address || !port || *port == 0) return std::nullopt;
  // A colon in an address needs the brackets, and only it may have them.
  if (bracketed != (address->family == Family::V6)) return std::nullopt;
  return PinnedAddress{*address, static_cast<std::uint16_t>(*port)};
}

}  // namespace sallyport::policy
