// ASCII text without a locale: the character classes and small steps that every parser here is made of.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sallyport {

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
constexpr bool is_lower(char c) {
  return c >= 'a' && c <= 'z';
}
constexpr bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}
constexpr bool is_alpha(char c) {
  return is_lower(c) || is_upper(c);
}
constexpr bool is_alnum(char c) {
  return is_alpha(c) || is_digit(c);
}
constexpr bool is_hex(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
constexpr char to_lower(char c) {
  return is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c;
}
// Of what is_hex().
constexpr unsigned hex_value(char c) {
  return static_cast<unsigned>(is_digit(c) ? c - '0' : to_lower(c) - 'a' + 10);
}
// RFC 9110, 5.6.2: tchar.
constexpr bool is_token_char(char c) {
  return is_alnum(c) || std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}
// RFC 9110, 5.5 without the leniency, for a field's value: visible characters, space, tab and obs-text.
constexpr bool is_field_value_char(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return c == '\t' || (byte >= 0x20 && byte != 0x7f);
}
// RFC 5234: VCHAR.
constexpr bool is_visible(char c) {
  return c > ' ' && c < 0x7f;
}
constexpr bool is_token(std::string_view text) {
  if (text.empty()) return false;
  for (const char c : text) {
    if (!is_token_char(c)) return false;
  }
  return true;
}

std::string lowered(std::string_view text);
bool equals_ignoring_case(std::string_view a, std::string_view b);
// Every piece between separators, empty ones included: "a//b" by '/' gives "a", "", "b". Views into `text`.
std::vector<std::string_view> split(std::string_view text, char separator);
// Spaces and tabs off both ends (RFC 9110's OWS).
std::string_view trimmed(std::string_view text);

// Digits only: no sign, no space, no leading zero but "0" itself; nullopt beyond `max`.
std::optional<std::uint64_t> parse_decimal(std::string_view text, std::uint64_t max = UINT64_MAX);

std::string to_hex(std::string_view bytes);

// For people's eyes and for logs: printable ASCII stays, everything else and the backslash becomes \xNN; cut
// at `max_bytes` of output with "..." behind it.
std::string escaped(std::string_view bytes, std::size_t max_bytes = 256);
// The bytes as a string of JSON, with its quotes: ASCII without control characters. Any other byte becomes
// \u00XX, so that taking each code point for a byte (Latin-1) gives back the very bytes.
void append_json_text(std::string& out, std::string_view bytes);

}  // namespace sallyport
