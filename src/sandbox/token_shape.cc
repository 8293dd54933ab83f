#include "sandbox/token_shape.h"

#include <algorithm>

#include "base/text.h"
#include "base/token_shape.h"

namespace sallyport::sandbox {
namespace {

constexpr std::string_view kPrivateKey = "-----BEGIN ";
// Shorter ones are words: "sk-learn", "npm_config". An AWS access key has just as many.
constexpr std::size_t kMinTokenBytes = 20;

}  // namespace

bool begins_like_token(std::string_view text) {
  return text.starts_with(kPrivateKey) || std::ranges::any_of(token_shapes(), [&](const TokenShape& shape) {
           return text.starts_with(shape.prefix);
         });
}

bool holds_token(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (at > 0 && is_base64url(text[at - 1])) continue;
    const std::string_view rest = text.substr(at);
    if (!begins_like_token(rest)) continue;
    if (rest.starts_with(kPrivateKey) && rest.contains("PRIVATE KEY-----")) return true;
    const auto end = std::ranges::find_if_not(rest, [](char c) { return is_base64url(c) || c == '.'; });
    const std::string_view word = rest.substr(0, static_cast<std::size_t>(end - rest.begin()));
    if (word.size() >= kMinTokenBytes && std::ranges::any_of(word, is_digit)) return true;
  }
  return false;
}

}  // namespace sallyport::sandbox
