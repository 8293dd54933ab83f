#include "policy/url_parts.h"

#include "base/text.h"

namespace sallyport::policy {
namespace {

UrlScheme scheme_of(std::string_view text) {
  if (equals_ignoring_case(text, "https")) return UrlScheme::Https;
  if (equals_ignoring_case(text, "http")) return UrlScheme::Http;
  if (equals_ignoring_case(text, "wss")) return UrlScheme::Wss;
  if (equals_ignoring_case(text, "ws")) return UrlScheme::Ws;
  if (equals_ignoring_case(text, "ssh") || equals_ignoring_case(text, "git+ssh")) return UrlScheme::Ssh;
  if (equals_ignoring_case(text, "git")) return UrlScheme::Git;
  if (equals_ignoring_case(text, "tcp")) return UrlScheme::Tcp;
  return UrlScheme::Other;
}

std::string_view without_userinfo(std::string_view authority) {
  const std::size_t at = authority.rfind('@');
  return at == std::string_view::npos ? authority : authority.substr(at + 1);
}

}  // namespace

UrlParts take_apart(std::string_view url) {
  UrlParts parts;
  std::string_view rest = url;
  if (const std::size_t scheme_end = url.find("://"); scheme_end != std::string_view::npos) {
    parts.scheme = scheme_of(url.substr(0, scheme_end));
    rest = url.substr(scheme_end + 3);
  } else if (const std::size_t colon = url.find(':');
             colon != std::string_view::npos && url.find('@') < colon && url.find('/') > colon) {
    return {UrlScheme::Ssh, without_userinfo(url.substr(0, colon)), url.substr(colon + 1)};
  }
  const std::size_t slash = rest.find_first_of("/?#");
  parts.authority = without_userinfo(rest.substr(0, slash));
  if (slash != std::string_view::npos) {
    const std::string_view target = rest.substr(slash);
    parts.target = target.substr(0, target.find('#'));
  }
  return parts;
}

}  // namespace sallyport::policy
