#include "audit/mask.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/text.h"

namespace sallyport::audit {
namespace {

bool is_base64url(char c) {
  return is_alnum(c) || c == '-' || c == '_';
}
bool is_alnum_or_dash(char c) {
  return is_alnum(c) || c == '-';
}
bool is_upper_or_digit(char c) {
  return is_upper(c) || is_digit(c);
}

enum class Before : std::uint8_t { Anything, NoLetterOrDigit };

// A token is its prefix and at least `min_run` characters of one class. The minimum keeps words apart from
// tokens; real tokens are longer.
struct Shape {
  std::string_view prefix;
  std::size_t min_run;
  bool (*belongs)(char);
  Before before = Before::Anything;
};

// The longer prefix stands before one that it begins with.
constexpr std::array kShapes{
    Shape{"ghp_", 20, is_alnum},
    Shape{"gho_", 20, is_alnum},
    Shape{"ghs_", 20, is_alnum},
    Shape{"ghu_", 20, is_alnum},
    Shape{"ghr_", 20, is_alnum},
    Shape{"github_pat_", 20, is_base64url},
    Shape{"glpat-", 16, is_base64url},
    Shape{"sk-ant-", 10, is_base64url},
    Shape{"sk-", 20, is_base64url, Before::NoLetterOrDigit},  // not "task-", "disk-"
    Shape{"xoxa-", 10, is_alnum_or_dash},
    Shape{"xoxb-", 10, is_alnum_or_dash},
    Shape{"xoxe-", 10, is_alnum_or_dash},
    Shape{"xoxo-", 10, is_alnum_or_dash},
    Shape{"xoxp-", 10, is_alnum_or_dash},
    Shape{"xoxr-", 10, is_alnum_or_dash},
    Shape{"xoxs-", 10, is_alnum_or_dash},
    Shape{"AKIA", 16, is_upper_or_digit},
    Shape{"npm_", 30, is_alnum},
    Shape{"pypi-", 30, is_base64url},
};

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
  for (const Shape& shape : kShapes) {
    if (!here.starts_with(shape.prefix)) continue;
    if (shape.before == Before::NoLetterOrDigit && at > 0 && is_alnum(text[at - 1])) continue;
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

}  // namespace

std::string masked(std::string_view text) {
  constexpr std::string_view kAuthority = "://";
  std::string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    Found found = token_at(text, at);
    if (found.size == 0) found = json_web_token_at(text.substr(at));
    if (found.size > 0) {
      result.append(text.substr(at, found.keep)).append("***");
      at += found.size;
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
