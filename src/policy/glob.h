// Texts with '*', which stands for any run of characters.
#pragma once

#include <cstdint>
#include <string_view>

namespace sallyport::policy {

enum class Case : std::uint8_t { Exact, Folded };  // Folded: ASCII letters alone

// At worst the product of the two lengths: on a mismatch only the last '*' takes one character more, never an
// earlier one.
bool glob_matches(std::string_view pattern, std::string_view text, Case rule);

}  // namespace sallyport::policy
