#include "policy/similar.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace sallyport::policy {
namespace {

TEST(Similar, CountsEdits) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("abc", ""), 3U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(edit_distance("acess", "access"), 1U);
}

TEST(Similar, FindsSlipsOfThePenAndNothingElse) {
  constexpr std::array<std::string_view, 3> kKeys{"repo", "access", "credential"};
  EXPECT_EQ(most_similar("acess", kKeys), "access");
  EXPECT_EQ(most_similar("credentials", kKeys), "credential");
  EXPECT_EQ(most_similar("rep", kKeys), "repo");
  EXPECT_EQ(most_similar("limits", kKeys), std::nullopt);
  EXPECT_EQ(most_similar("", kKeys), std::nullopt);
  EXPECT_EQ(most_similar(std::string(1000, 'a'), kKeys), std::nullopt);
}

}  // namespace
}  // namespace sallyport::policy
