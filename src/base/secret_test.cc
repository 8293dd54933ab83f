#include "base/secret.h"

#include <gtest/gtest.h>

#include <ostream>

namespace sallyport {
namespace {

template <class T>
concept Streamable = requires(std::ostream& out, const T& value) { out << value; };
static_assert(!Streamable<Secret>);
static_assert(!std::is_convertible_v<Secret, std::string_view>);
static_assert(!std::is_copy_constructible_v<Secret>);

TEST(Secret, HoldsWhatWasAppendedUpToItsCapacity) {
  auto secret = Secret::with_capacity(8);
  ASSERT_TRUE(secret) << secret.error().detail;
  EXPECT_TRUE(secret->append("token"));
  EXPECT_FALSE(secret->append("more"));
  EXPECT_EQ(secret->expose(), "token");
}

TEST(Secret, TruncateZeroesTheRest) {
  auto secret = Secret::with_capacity(8);
  ASSERT_TRUE(secret && secret->append("token\n"));
  const char* behind = secret->expose().data() + 5;
  secret->truncate(5);
  EXPECT_EQ(secret->expose(), "token");
  EXPECT_EQ(*behind, '\0');
}

TEST(Secret, MovesAndLeavesNothingBehind) {
  auto first = Secret::with_capacity(8);
  ASSERT_TRUE(first && first->append("token"));
  Secret second = std::move(*first);
  EXPECT_EQ(second.expose(), "token");
  EXPECT_TRUE(first->empty());  // NOLINT(bugprone-use-after-move): this is what is being tested
}

TEST(Secret, RefusesWhatIsTooLarge) {
  EXPECT_FALSE(Secret::with_capacity(Secret::kMaxBytes + 1));
}

}  // namespace
}  // namespace sallyport
