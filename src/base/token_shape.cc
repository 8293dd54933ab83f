#include "base/token_shape.h"

#include <array>

#include "base/text.h"

namespace sallyport {
namespace {

bool is_alnum_or_dash(char c) {
  return is_alnum(c) || c == '-';
}
bool is_upper_or_digit(char c) {
  return is_upper(c) || is_digit(c);
}

constexpr std::array kShapes{
    TokenShape{"ghp_", 20, is_alnum},
    TokenShape{"gho_", 20, is_alnum},
    TokenShape{"ghs_", 20, is_alnum},
    TokenShape{"ghu_", 20, is_alnum},
    TokenShape{"ghr_", 20, is_alnum},
    TokenShape{"github_pat_", 20, is_base64url},
    TokenShape{"glpat-", 16, is_base64url},
    TokenShape{"sk-ant-", 10, is_base64url},
    TokenShape{"sk-", 20, is_base64url, TokenShape::Before::NoLetterOrDigit},  // not "task-", "disk-"
    TokenShape{"xoxa-", 10, is_alnum_or_dash},
    TokenShape{"xoxb-", 10, is_alnum_or_dash},
    TokenShape{"xoxe-", 10, is_alnum_or_dash},
    TokenShape{"xoxo-", 10, is_alnum_or_dash},
    TokenShape{"xoxp-", 10, is_alnum_or_dash},
    TokenShape{"xoxr-", 10, is_alnum_or_dash},
    TokenShape{"xoxs-", 10, is_alnum_or_dash},
    TokenShape{"AKIA", 16, is_upper_or_digit},
    TokenShape{"npm_", 30, is_alnum},
    TokenShape{"pypi-", 30, is_base64url},
    TokenShape{"hf_", 30, is_alnum, TokenShape::Before::NoLetterOrDigit},
    TokenShape{"AIza", 30, is_base64url},
    TokenShape{"ya29.", 20, is_base64url},
};

}  // namespace

std::span<const TokenShape> token_shapes() {
  return kShapes;
}

bool is_base64url(char c) {
  return is_alnum(c) || c == '-' || c == '_';
}

}  // namespace sallyport
