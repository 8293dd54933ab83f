#include "policy/host_pattern.h"

#include <gtest/gtest.h>

#include <vector>

#include "policy/rule_list.h"

namespace sallyport::policy {
namespace {

HostName host(std::string_view text) {
  return *HostName::parse(text);
}

HostPattern pattern(std::string_view text) {
  return *HostPattern::parse(text);
}

TEST(HostPattern, MatchesAsDocumented) {
  struct Case {
    const char* pattern;
    const char* host;
    bool matches;
  };
  for (const Case& c : std::vector<Case>{
           {"api.ok.test", "api.ok.test", true},
           {"API.ok.test.", "api.OK.test", true},
           {"api.ok.test", "x.api.ok.test", false},
           {"api.ok.test", "ok.test", false},
           {"*.wild.test", "wild.test", false},
           {"*.wild.test", "evil-wild.test", false},
           {"*.wild.test", "xwild.test", false},
           {"*.wild.test", "a.wild.test", true},
           {"*.wild.test", "a.b.wild.test", true},
           {"*.wild.test", "wild.test.evil.test", false},
           {"*.wild.test", "a.wild.test.evil.test", false},
           {"*.a.wild.test", "b.wild.test", false},
       }) {
    SCOPED_TRACE(std::string(c.pattern) + " " + c.host);
    EXPECT_EQ(pattern(c.pattern).matches(host(c.host)), c.matches);
    HostIndex index;
    index.add(pattern(c.pattern), 7);
    EXPECT_EQ(index.contains(host(c.host)), c.matches);
    EXPECT_EQ(index.find(host(c.host)).size(), c.matches ? 1U : 0U);
  }
}

TEST(HostPattern, RefusesWhatCouldMeanMore) {
  for (const char* text : {"",
                           "*",
                           "*.",
                           "*.*",
                           "*.com",
                           "**.ok.test",
                           "a.*.test",
                           "*ok.test",
                           "a*.ok.test",
                           "*.*.ok.test",
                           "*.localhost",
                           "*.x.local",
                           "x.internal",
                           "127.0.0.1",
                           "*.0.0.1",
                           "*.1",
                           "ok",
                           "a b.test",
                           "https://ok.test",
                           "ok.test:443",
                           "*.ok.test/"}) {
    EXPECT_FALSE(HostPattern::parse(text)) << text;
  }
}

TEST(HostPattern, CoversWhatItMatches) {
  EXPECT_TRUE(pattern("a.test.test").covers(pattern("a.test.test")));
  EXPECT_TRUE(pattern("*.wild.test").covers(pattern("*.wild.test")));
  EXPECT_TRUE(pattern("*.wild.test").covers(pattern("*.a.wild.test")));
  EXPECT_TRUE(pattern("*.wild.test").covers(pattern("a.wild.test")));
  EXPECT_FALSE(pattern("*.wild.test").covers(pattern("wild.test")));
  EXPECT_FALSE(pattern("a.wild.test").covers(pattern("*.a.wild.test")));
  EXPECT_FALSE(pattern("*.a.wild.test").covers(pattern("*.wild.test")));
}

TEST(HostIndex, GivesTheMostSpecificFirstAndThenTheFilesOrder) {
  HostIndex index;
  index.add(pattern("*.wild.test"), 0);
  index.add(pattern("*.a.wild.test"), 1);
  index.add(pattern("x.a.wild.test"), 2);
  index.add(pattern("*.wild.test"), 3);
  EXPECT_EQ(index.find(host("x.a.wild.test")), (std::vector<std::size_t>{2, 1, 0, 3}));
  EXPECT_EQ(index.find(host("y.wild.test")), (std::vector<std::size_t>{0, 3}));
  EXPECT_TRUE(index.find(host("wild.test")).empty());
}

}  // namespace
}  // namespace sallyport::policy
