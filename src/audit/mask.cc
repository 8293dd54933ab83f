#include "audit/mask.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "base/token_shape.h"

namespace sallyport::audit {
namespace {

std::size_t run_length(std::string_view text, bool (*belongs)(char)) {
  const auto* end = std::ranges::find_if_not(text, belongs);
  return static_cast<std::size_t>(end - text.begin());
}

struct Found {
  std::size_t keep = 0;  // bytes of it that stay
  std::size_t size = 0;  // bytes of it in the text; 0: nothing found
};

Found token_at(std::string_view text, std::size_t at) {
  const std::string_view here = text.substr(at);
  for (const TokenShape& shape : token_shapes()) {
    if (here.front() != shape.prefix.front() || !here.starts_with(shape.prefix)) continue;
    if (shape.before == TokenShape::Before::NoLetterOrDigit && at > 0 && is_alnum(text[at - 1])) continue;
    const std::size_t run = run_length(here.substr(shape.prefix.size()), shape.belongs);
    if (run >= shape.min_run) return {shape.prefix.size(), shape.prefix.size() + run};
  }
  return {};
}

// RFC 7519: three base64url parts with dots between; "eyJ" is how `{"` begins.
Found json_web_token_at(std::string_view here) {
  constexpr std::string_view kPrefix = "eyJ";
  constexpr std::size_t kMinPart = 10;
  if (!here.starts_with(kPrefix)) return {};
  const std::size_t header = run_length(here, is_base64url);
  if (header < kMinPart || header == here.size() || here[header] != '.') return {};
  const std::size_t payload = run_length(here.substr(header + 1), is_base64url);
  if (payload < kMinPart) return {};
  std::size_t size = header + 1 + payload;
  if (size < here.size() && here[size] == '.') {
    size += 1 + run_length(here.substr(size + 1), is_base64url);
  }
  return {kPrefix.size(), size};
}

// The user information that follows "://" (RFC 3986, 3.2.1), whether it has a password or is a token alone.
// Returns its length; 0 when there is none.
std::size_t userinfo_length(std::string_view rest) {
  const std::size_t end = rest.find_first_of("/?# \t\r\n\"'<>");
  const std::size_t at = rest.substr(0, end).rfind('@');
  return at == std::string_view::npos ? 0 : at;
}

// Parameters of a URL whose values are secrets, in lower case: keys, and signatures that are as good as one.
constexpr std::array<std::string_view, 16> kSecretParameters{
    "key",
    "api_key",
    "apikey",
    "api-key",
    "access_token",
    "token",
    "auth",
    "authorization",
    "password",
    "secret",
    "client_secret",
    "sig",
    "signature",
    "x-amz-signature",
    "x-amz-security-token",
    "x-goog-signature",
};

// "?key=value" or "&key=value", the value not empty.
Found secret_parameter_at(std::string_view here) {
  if (here.empty() || (here[0] != '?' && here[0] != '&')) return {};
  const std::size_t equals = here.find('=');
  const std::size_t end = std::min(here.find_first_of("&# ", 1), here.size());
  if (equals >= end || equals + 1 == end) return {};
  if (std::ranges::find(kSecretParameters, lowered(here.substr(1, equals - 1))) == kSecretParameters.end())
    return {};
  return {equals + 1, end};
}

// Every line of the log comes through here several times, and most of it is none of these.
std::array<bool, 256> first_bytes() {
  std::array<bool, 256> table{};
  for (const char c : {'e', '?', '&', ':'}) table[static_cast<unsigned char>(c)] = true;
  for (const TokenShape& shape : token_shapes())
    table[static_cast<unsigned char>(shape.prefix.front())] = true;
  return table;
}

bool may_begin_a_secret(char c) {
  static const std::array<bool, 256> table = first_bytes();
  return table[static_cast<unsigned char>(c)];
}

}  // namespace

std::string masked(std::string_view text) {
  constexpr std::string_view kAuthority = "://";
  std::string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    if (!may_begin_a_secret(text[at])) {
      result += text[at++];
      continue;
    }
    Found found = token_at(text, at);
    if (found.size == 0) found = json_web_token_at(text.substr(at));
    if (found.size > 0) {
      result.append(text.substr(at, found.keep)).append("***");
      at += found.size;
      continue;
    }
    if (const Found secret = secret_parameter_at(text.substr(at)); secret.size > 0) {
      result.append(text.substr(at, secret.keep)).append("*");
      at += secret.size;
      continue;
    }
    if (text.substr(at).starts_with(kAuthority)) {
      result += kAuthority;
      at += kAuthority.size();
      const std::size_t userinfo = userinfo_length(text.substr(at));
      if (userinfo > 0) result += '*';
      at += userinfo;
      continue;
    }
    result += text[at++];
  }
  return result;
}

}  // namespace sallyport::audit
