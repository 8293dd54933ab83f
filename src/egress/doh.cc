#include "egress/doh.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "base/text.h"

namespace sallyport::egress {
namespace {

constexpr std::array<std::string_view, 3> kMediaTypes{
    "application/dns-json",
    "application/dns-message",
    "application/oblivious-dns-message",
};
// The 12 bytes of a message's header, in base64url.
constexpr std::size_t kHeaderCharacters = 16;

// In a list of types with parameters, as Accept has it; Content-Type is a list of one.
bool names_dns(std::string_view list) {
  return std::ranges::any_of(split(list, ','), [](std::string_view range) {
    const std::string type = lowered(trimmed(split(range, ';')[0]));
    return std::ranges::find(kMediaTypes, type) != kMediaTypes.end();
  });
}

bool asks_in_types(const http::RequestHead& head) {
  return std::ranges::any_of(head.fields, [](const http::Field& field) {
    return (field.name == "accept" || field.name == "content-type") && names_dns(field.value);
  });
}

// Leniently: what is no triplet stays.
std::string percent_decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool triplet = text[i] == '%' && i + 2 < text.size() && is_hex(text[i + 1]) && is_hex(text[i + 2]);
    decoded += triplet ? static_cast<char>(hex_value(text[i + 1]) * 16 + hex_value(text[i + 2])) : text[i];
    if (triplet) i += 2;
  }
  return decoded;
}

bool is_message(std::string_view value) {
  while (value.ends_with('=')) value.remove_suffix(1);
  return value.size() >= kHeaderCharacters && std::ranges::all_of(value, [](char c) {
           return is_alnum(c) || c == '-' || c == '_' || c == '+' || c == '/';
         });
}

struct Query {
  bool message = false;  // dns=
  bool name = false;     // name=
};

Query read_query(std::string_view text) {
  std::string decoded = percent_decoded(text);
  std::ranges::replace(decoded, ';', '&');
  Query query;
  for (const std::string_view pair : split(decoded, '&')) {
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view key = pair.substr(0, equals);
    query.message =
        query.message || (equals_ignoring_case(key, "dns") && is_message(pair.substr(equals + 1)));
    query.name = query.name || equals_ignoring_case(key, "name");
  }
  return query;
}

bool segment_is(const policy::HttpPath& path, std::size_t at, std::string_view text) {
  return at < path.segments().size() && equals_ignoring_case(path.segments()[at], text);
}

}  // namespace

bool is_dns_over_https(const http::RequestHead& head, const policy::HttpPath& path) {
  if (asks_in_types(head)) return true;
  if (segment_is(path, 0, "dns-query")) return true;
  if (segment_is(path, 0, ".well-known") && segment_is(path, 1, "masque")) return true;
  const Query query = read_query(path.query());
  return query.message || (query.name && segment_is(path, 0, "resolve"));
}

}  // namespace sallyport::egress
