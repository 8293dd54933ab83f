#include "policy/method.h"

#include <algorithm>
#include <array>

namespace sallyport::policy {
namespace {

// In the order of the enum.
constexpr std::array<std::string_view, 7> kNames{"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"};
static_assert(kNames.size() == static_cast<std::size_t>(kLastMethod) + 1);

}  // namespace

std::string_view name(Method method) {
  return kNames.at(static_cast<std::size_t>(method));
}

std::optional<Method> method_from_name(std::string_view text) {
  const auto* found = std::ranges::find(kNames, text);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Method>(found - kNames.begin());
}

std::string Methods::str() const {
  std::string text;
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    const auto method = static_cast<Method>(i);
    if (!contains(method)) continue;
    if (!text.empty()) text += ", ";
    text += name(method);
  }
  return text;
}

}  // namespace sallyport::policy
