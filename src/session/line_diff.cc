#include "session/line_diff.h"

#include <algorithm>
#include <cstdint>
#include <span>

namespace sallyport::session {
namespace {

using Lines = std::vector<std::string_view>;
using Span = std::span<const std::string_view>;

// Of the table below, 4 bytes each: two changed stretches of 1,000 lines.
constexpr std::size_t kMaxCells = 1'000'000;

// With their line ends: a last line without one is another line.
Lines lines_of(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::size_t size = end == std::string_view::npos ? text.size() : end + 1;
    lines.push_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return lines;
}

void add(char mark, Span lines, std::vector<DiffLine>& into) {
  for (const std::string_view line : lines) into.push_back({mark, line});
}

// By the longest common subsequence, the textbook's table from the end to the beginning.
void compare(Span old_lines, Span new_lines, std::vector<DiffLine>& into) {
  const std::size_t rows = old_lines.size();
  const std::size_t columns = new_lines.size();
  if (rows != 0 && columns != 0 && columns + 1 > kMaxCells / (rows + 1)) {
    add('-', old_lines, into);
    add('+', new_lines, into);
    return;
  }
  std::vector<std::uint32_t> table((rows + 1) * (columns + 1));
  const auto common = [&](std::size_t i, std::size_t j) -> std::uint32_t& {
    return table[(i * (columns + 1)) + j];
  };
  for (std::size_t i = rows; i-- > 0;) {
    for (std::size_t j = columns; j-- > 0;) {
      common(i, j) = old_lines[i] == new_lines[j] ? common(i + 1, j + 1) + 1
                                                  : std::max(common(i + 1, j), common(i, j + 1));
    }
  }
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < rows && j < columns) {
    if (old_lines[i] == new_lines[j]) {
      into.push_back({' ', old_lines[i++]});
      ++j;
    } else if (common(i + 1, j) >= common(i, j + 1)) {
      into.push_back({'-', old_lines[i++]});
    } else {
      into.push_back({'+', new_lines[j++]});
    }
  }
  add('-', old_lines.subspan(i), into);
  add('+', new_lines.subspan(j), into);
}

// Leaves out what lies further than `context` from every change.
std::vector<DiffLine> cut_to_context(const std::vector<DiffLine>& lines, std::size_t context) {
  std::vector<bool> near(lines.size());
  std::size_t judged = 0;  // lines before it, each once however large the context is
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].mark == ' ') continue;
    const std::size_t end = std::min(lines.size(), i + context + 1);
    for (std::size_t j = std::max(judged, i - std::min(i, context)); j < end; ++j) near[j] = true;
    judged = std::max(judged, end);
  }
  std::vector<DiffLine> kept;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (near[i]) {
      kept.push_back(lines[i]);
    } else if (kept.empty() || kept.back().mark != '@') {
      kept.push_back({'@', {}});
    }
  }
  return kept;
}

}  // namespace

std::vector<DiffLine> line_diff(std::string_view old_text, std::string_view new_text, std::size_t context) {
  const Lines old_lines = lines_of(old_text);
  const Lines new_lines = lines_of(new_text);
  const std::size_t shorter = std::min(old_lines.size(), new_lines.size());
  std::size_t front = 0;
  while (front < shorter && old_lines[front] == new_lines[front]) ++front;
  std::size_t back = 0;
  while (back < shorter - front &&
         old_lines[old_lines.size() - 1 - back] == new_lines[new_lines.size() - 1 - back]) {
    ++back;
  }
  std::vector<DiffLine> lines;
  const Span old_span(old_lines);
  const Span new_span(new_lines);
  add(' ', old_span.first(front), lines);
  compare(old_span.subspan(front, old_lines.size() - front - back),
          new_span.subspan(front, new_lines.size() - front - back), lines);
  add(' ', old_span.last(back), lines);
  return cut_to_context(lines, context);
}

}  // namespace sallyport::session
