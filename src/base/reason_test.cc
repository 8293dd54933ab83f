#include "base/reason.h"

#include <gtest/gtest.h>

#include <set>

namespace sallyport {
namespace {

TEST(Reason, EveryCodeIsUniqueAndComesBack) {
  std::set<std::string_view> seen;
  for (std::uint8_t number = 0; reason_from_number(number); ++number) {
    const Reason reason = *reason_from_number(number);
    EXPECT_TRUE(seen.insert(code(reason)).second) << code(reason);
    EXPECT_EQ(reason_from_code(code(reason)), reason);
  }
  EXPECT_GT(seen.size(), 40U);
  EXPECT_FALSE(reason_from_code("no_such_code"));
  EXPECT_FALSE(reason_from_number(255));
}

TEST(Reason, EveryRefusalHasAStatusAndASentenceOfOneLine) {
  for (std::uint8_t number = 1; reason_from_number(number); ++number) {
    const ReasonInfo& row = info(*reason_from_number(number));
    EXPECT_GE(row.status, 400) << row.code;
    EXPECT_EQ(row.sentence.back(), '.') << row.code;
    EXPECT_EQ(row.sentence.find('\n'), std::string_view::npos) << row.code;
  }
}

}  // namespace
}  // namespace sallyport
