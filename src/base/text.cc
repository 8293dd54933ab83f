#include "base/text.h"

#include <algorithm>
#include <array>

namespace sallyport {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

}  // namespace

std::string lowered(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), to_lower);
  return result;
}

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return to_lower(x) == to_lower(y); });
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  for (std::size_t start = 0;;) {
    const std::size_t end = text.find(separator, start);
    pieces.push_back(text.substr(start, end == std::string_view::npos ? end : end - start));
    if (end == std::string_view::npos) return pieces;
    start = end + 1;
  }
}

std::string_view trimmed(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

std::optional<std::uint64_t> parse_decimal(std::string_view text, std::uint64_t max) {
  if (text.empty() || (text.size() > 1 && text.front() == '0')) return std::nullopt;
  std::uint64_t value = 0;
  for (const char c : text) {
    if (!is_digit(c)) return std::nullopt;
    const auto digit = static_cast<std::uint64_t>(c - '0');
    if (value > (UINT64_MAX - digit) / 10) return std::nullopt;
    value = value * 10 + digit;
  }
  if (value > max) return std::nullopt;
  return value;
}

std::string to_hex(std::string_view bytes) {
  std::string hex;
  hex.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    hex += kHexDigits[byte >> 4U];
    hex += kHexDigits[byte & 15U];
  }
  return hex;
}

std::string escaped(std::string_view bytes, std::size_t max_bytes) {
  std::string text;
  for (const char c : bytes) {
    if (text.size() >= max_bytes) return text + "...";
    if (c >= ' ' && c < 0x7f && c != '\\') {
      text += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      text += "\\x";
      text += kHexDigits[byte >> 4U];
      text += kHexDigits[byte & 15U];
    }
  }
  return text;
}

void append_json_text(std::string& out, std::string_view bytes) {
  out += '"';
  for (const char c : bytes) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c >= ' ' && c < 0x7f) {
      out += c;
    } else {
      out += "\\u00" + to_hex({&c, 1});
    }
  }
  out += '"';
}

}  // namespace sallyport
