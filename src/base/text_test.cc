#include "base/text.h"

#include <gtest/gtest.h>

namespace sallyport {
namespace {

TEST(Text, ParsesDecimalsThatHaveOneSpelling) {
  EXPECT_EQ(parse_decimal("0"), 0U);
  EXPECT_EQ(parse_decimal("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(parse_decimal("100", 100), 100U);
  for (const char* bad : {"", "+1", "-1", " 1", "1 ", "01", "00", "0x1", "1_0", "18446744073709551616"}) {
    EXPECT_FALSE(parse_decimal(bad)) << bad;
  }
  EXPECT_FALSE(parse_decimal("101", 100));
}

TEST(Text, SplitsAndKeepsEmptyPieces) {
  EXPECT_EQ(split("/a//b", '/'), (std::vector<std::string_view>{"", "a", "", "b"}));
  EXPECT_EQ(split("", '/'), (std::vector<std::string_view>{""}));
}

TEST(Text, HexIsTwoLowerDigitsAByte) {
  EXPECT_EQ(to_hex("\x01\xff"), "01ff");
}

TEST(Text, EscapesEverythingThatATerminalCouldObey) {
  EXPECT_EQ(escaped("a\x1b[31m\\\xc3\n"), "a\\x1b[31m\\x5c\\xc3\\x0a");
  EXPECT_EQ(escaped(std::string(300, 'x'), 10), "xxxxxxxxxx...");
}

}  // namespace
}  // namespace sallyport
