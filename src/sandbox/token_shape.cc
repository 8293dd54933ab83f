#include "sandbox/token_shape.h"

#include <algorithm>

#include "base/text.h"

namespace sallyport::sandbox {
namespace {

constexpr std::string_view kPrefixes[] = {"ghp_",   "gho_", "ghu_",  "ghs_",  "ghr_",       "github_pat_",
                                          "glpat-", "sk-",  "xoxb-", "xoxp-", "AKIA",       "npm_",
                                          "pypi-",  "AIza", "ya29.", "hf_",   "-----BEGIN "};
// Shorter ones are words: "sk-learn", "npm_config". An AWS access key has just as many.
constexpr std::size_t kMinTokenBytes = 20;

bool is_token_byte(char c) {
  return is_alnum(c) || c == '_' || c == '-';
}

}  // namespace

bool begins_like_token(std::string_view text) {
  return std::ranges::any_of(kPrefixes, [&](std::string_view prefix) { return text.starts_with(prefix); });
}

bool holds_token(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (at > 0 && is_token_byte(text[at - 1])) continue;
    const std::string_view rest = text.substr(at);
    if (!begins_like_token(rest)) continue;
    if (rest.starts_with("-----BEGIN ") && rest.contains("PRIVATE KEY-----")) return true;
    const auto end = std::ranges::find_if_not(rest, [](char c) { return is_token_byte(c) || c == '.'; });
    const std::string_view word = rest.substr(0, static_cast<std::size_t>(end - rest.begin()));
    if (word.size() >= kMinTokenBytes && std::ranges::any_of(word, is_digit)) return true;
  }
  return false;
}

}  // namespace sallyport::sandbox
