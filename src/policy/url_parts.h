// A URL taken apart as people write them, for messages to people: what a sandbox asks for is never read by
// this.
#pragma once

#include <cstdint>
#include <string_view>

namespace sallyport::policy {

enum class UrlScheme : std::uint8_t { None, Https, Http, Wss, Ws, Ssh, Git, Tcp, Other };

// Views into the URL. Its user name and password are left out: those are never shown. So is its fragment,
// which no client sends.
struct UrlParts {
  UrlScheme scheme = UrlScheme::None;
  std::string_view authority;
  std::string_view target;  // path and query; may be empty
};

// Also git's short form for SSH, user@host:path.
UrlParts take_apart(std::string_view url);

}  // namespace sallyport::policy
