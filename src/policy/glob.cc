#include "policy/glob.h"

#include <cstddef>

#include "base/text.h"

namespace sallyport::policy {
namespace {

constexpr char kWildcard = '*';

bool same_char(char a, char b, Case rule) {
  return rule == Case::Folded ? to_lower(a) == to_lower(b) : a == b;
}

}  // namespace

bool glob_matches(std::string_view pattern, std::string_view text, Case rule) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;
  std::size_t star_text = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == kWildcard) {
      star = p++;
      star_text = t;
    } else if (p < pattern.size() && same_char(pattern[p], text[t], rule)) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++star_text;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == kWildcard) ++p;
  return p == pattern.size();
}

}  // namespace sallyport::policy
