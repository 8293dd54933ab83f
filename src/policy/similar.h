// Which of several words somebody may have meant. For messages to people only: it costs the product of the
// lengths, so nothing that a sandbox sends is compared with it.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace sallyport::policy {

// How many characters must be added, removed or replaced.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The candidate nearest to `word`, when it is near enough to be a slip of the pen: at most a third of the
// word's letters differ. The first of equals.
std::optional<std::string_view> most_similar(std::string_view word,
                                             std::span<const std::string_view> candidates);

}  // namespace sallyport::policy
