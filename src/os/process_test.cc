#include "os/process.h"

#include <gtest/gtest.h>

#include <vector>

namespace sallyport::os {
namespace {

Result<std::optional<Ids>> parsed(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "program");
  return parse_ids(static_cast<int>(arguments.size()), arguments.data());
}

TEST(ParseIds, TakesBothOrNone) {
  const auto none = parsed({});
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);
  const auto both = parsed({"--uid", "1000", "--gid", "4294967295"});
  ASSERT_TRUE(both && *both);
  EXPECT_EQ((*both)->uid, 1000U);
  EXPECT_EQ((*both)->gid, 4294967295U);
}

TEST(ParseIds, RefusesAnythingElse) {
  for (const std::vector<const char*>& arguments : std::vector<std::vector<const char*>>{
           {"--uid", "1"},
           {"--gid", "1", "--uid", "1"},
           {"--uid", "1", "--gid", "1", "--uid"},
           {"--uid", "-1", "--gid", "1"},
           {"--uid", "1", "--gid", "4294967296"},
           {"--uid", "", "--gid", "1"},
       }) {
    const auto refused = parsed(arguments);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().reason, Reason::Internal);
  }
}

}  // namespace
}  // namespace sallyport::os
