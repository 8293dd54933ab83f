// Tokens that show by their first characters what they are.
#pragma once

#include <string_view>

namespace sallyport::sandbox {

// Begins as one.
bool begins_like_token(std::string_view text);
// Has one somewhere: not in the middle of a word, long enough, with a digit in it; or a private key.
bool holds_token(std::string_view text);

}  // namespace sallyport::sandbox
