#include "policy/host.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "base/text.h"
#include "policy/address.h"

namespace sallyport::policy {
namespace {

bool is_name_char(char c) {
  return is_alnum(c) || c == '-' || c == '.';
}

// One part of an address as inet_aton reads it: decimal, octal with a leading 0, or hexadecimal with 0x. An
// overflowing number, an "08" and a bare "0x" count too: some reader somewhere takes each of them.
bool is_numeric_label(std::string_view label) {
  if (label.empty()) return false;
  if (label.starts_with("0x") || label.starts_with("0X")) {
    return std::ranges::all_of(label.substr(2), is_hex);
  }
  return std::ranges::all_of(label, is_digit);
}

// Any IPv4 spelling of inet_aton: one to four numeric parts.
bool is_inet_aton(const std::vector<std::string_view>& labels) {
  constexpr std::size_t kMaxParts = 4;
  return labels.size() <= kMaxParts && std::ranges::all_of(labels, is_numeric_label);
}

std::string_view without_trailing_dots(std::string_view text) {
  while (text.ends_with('.')) text.remove_suffix(1);
  return text;
}

std::string_view without_brackets(std::string_view text) {
  if (text.size() < 2 || !text.starts_with('[') || !text.ends_with(']')) return text;
  return text.substr(1, text.size() - 2);
}

// Whatever anybody could take for an address. A zone ("fe80::1%eth0") is none: the percent makes it
// malformed.
bool is_address(std::string_view text) {
  const std::string_view bare = without_brackets(text);
  if (IpAddress::parse(bare).has_value()) return true;
  return is_inet_aton(split(without_trailing_dots(bare), '.'));
}

Status check_label(std::string_view label) {
  if (label.empty()) return fail(Reason::BadRequest, "the host name has an empty label");
  if (label.size() > HostName::kMaxLabelBytes) {
    return fail(Reason::BadRequest, "a label of the host name is longer than 63 bytes");
  }
  if (label.starts_with('-') || label.ends_with('-')) {
    return fail(Reason::BadRequest, "a label of the host name begins or ends with a hyphen");
  }
  return {};
}

struct SpecialSuffix {
  std::string_view label;  // the last one
  std::string_view why;
};

// RFC 6761, 6762, 7686, 8375, 9476, ICANN's "internal", and what Docker, Kubernetes and the clouds answer to.
// "test" and "example" mean nothing special to any machine and stay usable.
constexpr std::array kSpecialSuffixes{
    SpecialSuffix{"localhost", "means this very machine"},
    SpecialSuffix{"localdomain", "means this very machine"},
    SpecialSuffix{"local", "belongs to multicast DNS on the local network"},
    SpecialSuffix{"internal", "belongs to the inside of a cloud or of a container engine"},
    SpecialSuffix{"svc", "belongs to the inside of a cluster"},
    SpecialSuffix{"arpa", "belongs to the DNS's own infrastructure"},
    SpecialSuffix{"invalid", "never resolves"},
    SpecialSuffix{"onion", "is not resolved by DNS"},
    SpecialSuffix{"alt", "is not resolved by DNS"},
};

}  // namespace

Result<HostName> HostName::parse(std::string_view text) {
  // The length first: an attacker chooses it. One more for the root's dot.
  if (text.size() > kMaxBytes + 1) return fail(Reason::BadRequest, "the host name is longer than 253 bytes");
  if (is_address(text)) return fail(Reason::IpLiteral, "'" + escaped(text) + "' is an address, not a name");
  if (!std::ranges::all_of(text, is_name_char)) {
    return fail(Reason::BadRequest, "the host name has a character other than letters, digits, '-' and '.'");
  }
  if (text.ends_with('.')) text.remove_suffix(1);
  if (text.size() > kMaxBytes) return fail(Reason::BadRequest, "the host name is longer than 253 bytes");

  const std::vector<std::string_view> labels = split(text, '.');
  for (const std::string_view label : labels) {
    if (Status status = check_label(label); !status) return std::unexpected(std::move(status).error());
  }
  if (labels.size() < 2) return fail(Reason::BadRequest, "the host name has a single label");
  if (is_numeric_label(labels.back())) {
    return fail(Reason::BadRequest, "the host name's last label is a number");
  }
  return HostName(lowered(text));
}

std::string_view special_name(const HostName& host) {
  const std::string_view name = host.str();
  const std::string_view last = name.substr(name.rfind('.') + 1);
  const auto* found = std::ranges::find(kSpecialSuffixes, last, &SpecialSuffix::label);
  return found == kSpecialSuffixes.end() ? std::string_view{} : found->why;
}

Result<Authority> parse_authority(std::string_view text, std::uint16_t default_port) {
  // In brackets the colons belong to the address; elsewhere there is at most one.
  const std::size_t bracket = text.starts_with('[') ? text.find(']') : 0;
  if (bracket == std::string_view::npos) return fail(Reason::BadRequest, "the authority has an open bracket");
  const std::size_t colon = text.find(':', bracket);
  std::uint16_t port = default_port;
  if (colon != std::string_view::npos) {
    const auto number = parse_decimal(text.substr(colon + 1), UINT16_MAX);
    if (!number || *number == 0) return fail(Reason::BadRequest, "the port is not a number from 1 to 65535");
    port = static_cast<std::uint16_t>(*number);
  }
  Result<HostName> host = HostName::parse(text.substr(0, colon));
  if (!host) return fail(std::move(host));
  return Authority{*std::move(host), port};
}

}  // namespace sallyport::policy
