// A host name that has exactly one reading: ASCII letters, digits and hyphens in labels, lower case, no
// trailing dot, last label not numeric. Whoever holds a HostName may compare it, log it, resolve it and write
// it on the wire.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace sallyport::policy {

class HostName {
 public:
  static constexpr std::size_t kMaxBytes = 253;      // RFC 1035, 2.3.4, without the root's dot
  static constexpr std::size_t kMaxLabelBytes = 63;  // RFC 1035, 2.3.4

  // The only normalisations are: upper case to lower case, one trailing dot dropped. Everything that anybody
  // could take for an address (dotted, octal, hexadecimal, one number, bracketed) is Reason::IpLiteral; all
  // else that is not a name of at least two labels is Reason::BadRequest.
  static Result<HostName> parse(std::string_view text);

  const std::string& str() const { return name_; }
  auto operator<=>(const HostName&) const = default;

 private:
  explicit HostName(std::string name) : name_(std::move(name)) {}
  std::string name_;
};

// Why no policy may name this host ("means this very machine"), or "" when one may: names that mean the
// machine itself, its local network or its cloud's inside, whatever a resolver would say.
std::string_view special_name(const HostName& host);

// "host" or "host:port" as it stands in a Host field or a URL's authority. The port is digits, 1 to 65535.
struct Authority {
  HostName host;
  std::uint16_t port;
};
Result<Authority> parse_authority(std::string_view text, std::uint16_t default_port);

}  // namespace sallyport::policy

template <>
struct std::hash<sallyport::policy::HostName> {
  std::size_t operator()(const sallyport::policy::HostName& host) const noexcept {
    return std::hash<std::string>()(host.str());
  }
};
