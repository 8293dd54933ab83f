#include "vault/inject.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace sallyport::vault {
namespace {

constexpr std::string_view kField = "Authorization: Basic ";
constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

Result<Secret> basic_authorization(policy::HostKind kind, const Secret& token) {
  const std::string_view user = policy::basic_user(kind);
  const std::string_view secret = token.expose();
  const std::size_t size = user.size() + 1 + secret.size();
  const auto byte_at = [&](std::size_t i) -> std::uint32_t {
    const char c = i < user.size() ? user[i] : i == user.size() ? ':' : secret[i - user.size() - 1];
    return static_cast<unsigned char>(c);
  };

  auto line = Secret::with_capacity(kField.size() + (size + 2) / 3 * 4);
  if (!line) return fail(std::move(line));
  bool fits = line->append(kField);
  // RFC 4648, 4, straight into the Secret: a std::string would leave the token in memory.
  for (std::size_t i = 0; i < size; i += 3) {
    const std::size_t count = std::min<std::size_t>(3, size - i);
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j) group = group << 8U | (j < count ? byte_at(i + j) : 0U);
    for (std::size_t j = 0; j < 4; ++j) {
      const char* digit = j <= count ? &kAlphabet[group >> (18U - 6U * j) & 63U] : "=";
      fits = fits && line->append({digit, 1});
    }
  }
  if (!fits) return fail(Reason::Internal, "the authorization line does not fit its memory");
  return line;
}

}  // namespace sallyport::vault
