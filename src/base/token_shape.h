// Tokens that show by their first characters what they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace sallyport {

// A token is its prefix and at least `min_run` characters of one class. The minimum keeps words apart from
// tokens; real tokens are longer.
struct TokenShape {
  enum class Before : std::uint8_t { Anything, NoLetterOrDigit };

  std::string_view prefix;
  std::size_t min_run;
  bool (*belongs)(char);
  Before before = Before::Anything;
};

// A longer prefix stands before one that it begins with.
std::span<const TokenShape> token_shapes();

// RFC 4648, 5, without padding.
bool is_base64url(char c);

}  // namespace sallyport
