// What changed between two texts, line by line, as `diff -u` shows it. Pure.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace sallyport::session {

struct DiffLine {
  // ' ' in both, '-' in the old alone, '+' in the new alone; '@': lines that are the same were left out here.
  char mark;
  std::string_view text;  // into the old or new text, with its line end when it has one
};

// Lines that changed and up to `context` lines around each. Texts that differ give at least one '-' or '+'.
// Time and memory are bounded: where too much differs, everything between the first and the last change
// counts as replaced.
std::vector<DiffLine> line_diff(std::string_view old_text, std::string_view new_text,
                                std::size_t context = 3);

}  // namespace sallyport::session
