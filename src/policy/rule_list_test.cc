#include "policy/rule_list.h"

#include <gtest/gtest.h>

#include <vector>

namespace sallyport::policy {
namespace {

using Rules = std::vector<std::size_t>;

HostPattern pattern(const char* text) {
  return *HostPattern::parse(text);
}

HostIndex sample() {
  HostIndex index;
  index.add(pattern("*.cdn.test"), 0);
  index.add(pattern("a.cdn.test"), 1);
  index.add(pattern("*.a.cdn.test"), 2);
  index.add(pattern("cdn.test"), 3);
  index.add(pattern("a.cdn.test"), 4);
  return index;
}

TEST(HostIndex, FindsRulesByAHostTheMostSpecificFirst) {
  EXPECT_EQ(sample().find(*HostName::parse("a.cdn.test")), (Rules{1, 4, 0}));
  EXPECT_EQ(sample().find(*HostName::parse("b.a.cdn.test")), (Rules{2, 0}));
  EXPECT_EQ(sample().find(*HostName::parse("cdn.test")), (Rules{3}));
  EXPECT_FALSE(sample().contains(*HostName::parse("xcdn.test")));
}

TEST(HostIndex, FindsThePatternsThatCoverAnother) {
  EXPECT_EQ(sample().covering(pattern("a.cdn.test")), (Rules{1, 4, 0}));
  EXPECT_EQ(sample().covering(pattern("*.a.cdn.test")), (Rules{2, 0}));
  EXPECT_EQ(sample().covering(pattern("*.b.cdn.test")), (Rules{0}));
  EXPECT_EQ(sample().covering(pattern("*.cdn.test")), (Rules{0}));
  EXPECT_EQ(sample().covering(pattern("*.wide.test")), Rules{});
}

TEST(HostIndex, KnowsTheRulesWithAPattern) {
  const HostIndex index = sample();
  ASSERT_NE(index.with(pattern("a.cdn.test")), nullptr);
  EXPECT_EQ(*index.with(pattern("a.cdn.test")), (Rules{1, 4}));
  EXPECT_EQ(*index.with(pattern("*.cdn.test")), (Rules{0}));
  EXPECT_EQ(index.with(pattern("*.b.cdn.test")), nullptr);
}

}  // namespace
}  // namespace sallyport::policy
