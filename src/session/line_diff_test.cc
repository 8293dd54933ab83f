#include "session/line_diff.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace sallyport::session {
namespace {

std::string shown(std::string_view old_text, std::string_view new_text, std::size_t context = 1) {
  std::string text;
  for (const DiffLine& line : line_diff(old_text, new_text, context)) {
    text += line.mark;
    text += line.text;
    if (!line.text.ends_with('\n')) text += '|';
  }
  return text;
}

TEST(LineDiff, ShowsWhatChangedAndALineAround) {
  struct Case {
    const char* before;
    const char* after;
    const char* diff;
  };
  for (const Case& c : {
           Case{"", "", ""},
           Case{"a\n", "a\n", "@|"},
           Case{"", "a\nb\n", "+a\n+b\n"},
           Case{"a\nb\n", "", "-a\n-b\n"},
           Case{"a\nb\nc\n", "a\nB\nc\n", " a\n-b\n+B\n c\n"},
           Case{"a\nb\nc\nd\ne\nf\n", "a\nb\nc\nd\ne\nF\n", "@| e\n-f\n+F\n"},
           Case{"1\n2\n3\n4\n5\n6\n7\n", "0\n1\n2\n3\n4\n5\n7\n", "+0\n 1\n@| 5\n-6\n 7\n"},
           Case{"a\na\nb\n", "a\nb\n", " a\n-a\n b\n"},
           Case{"a", "a\n", "-a|+a\n"},  // only the line's end differs
           Case{"a\r\n", "a\n", "-a\r\n+a\n"},
       }) {
    EXPECT_EQ(shown(c.before, c.after), c.diff) << c.before << "->\n" << c.after;
  }
}

// Lines that are in the old and lines that are in the new, in order, give the two texts back.
void expect_both_sides(const std::string& before, const std::string& after) {
  std::string old_side;
  std::string new_side;
  for (const DiffLine& line : line_diff(before, after, 1'000'000)) {
    if (line.mark != '+') old_side += line.text;
    if (line.mark != '-') new_side += line.text;
  }
  EXPECT_EQ(old_side, before);
  EXPECT_EQ(new_side, after);
}

TEST(LineDiff, LosesNoLine) {
  std::mt19937 random(7);
  const auto text = [&] {
    std::string lines;
    for (std::size_t i = random() % 40; i > 0; --i)
      lines += std::string(1, static_cast<char>('a' + random() % 4)) + "\n";
    return lines;
  };
  for (int i = 0; i < 500; ++i) expect_both_sides(text(), text());
}

TEST(LineDiff, ReplacesEverythingWhereTooMuchDiffers) {
  std::string before = "same\n";
  std::string after = "same\n";
  for (int i = 0; i < 5'000; ++i) {
    before += "b" + std::to_string(i) + "\n";
    after += "a" + std::to_string(i) + "\n";
  }
  expect_both_sides(before + "end\n", after + "end\n");
  expect_both_sides(before, "");
  // Half a million empty lines each: what an attacker's file of 1 MiB can hold.
  expect_both_sides(std::string(500'000, '\n'), "x\n" + std::string(400'000, '\n') + "y\n");
}

}  // namespace
}  // namespace sallyport::session
