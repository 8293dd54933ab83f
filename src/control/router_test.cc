#include "control/router.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sallyport::control {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(Router, MatchesWholeSegments) {
  const struct {
    const char* pattern;
    std::string path;
    bool fits;
  } cases[] = {
      {"/healthz", "/healthz", true},
      {"/healthz", "/healthz/", false},
      {"/healthz", "/healthzz", false},
      {"/healthz", "//healthz", false},
      {"/v1/sessions/{id}", "/v1/sessions/a", true},
      {"/v1/sessions/{id}", "/v1/sessions/", false},
      {"/v1/sessions/{id}", "/v1/sessions", false},
      {"/v1/sessions/{id}", "/v1/sessions/a/b", false},
      {"/v1/sessions/{id}", "/v2/sessions/a", false},
      {"/v1/sessions/{id}", "/v1/sessions/" + std::string(kMaxParameterBytes, 'x'), true},
      {"/v1/sessions/{id}", "/v1/sessions/" + std::string(kMaxParameterBytes + 1, 'x'), false},
  };
  for (const auto& [pattern, path, fits] : cases)
    EXPECT_EQ(match_path(pattern, path).has_value(), fits) << path;
  EXPECT_THAT(*match_path("/v1/{kind}/{id}/stop", "/v1/a/b/stop"),
              ElementsAre(Pair("id", "b"), Pair("kind", "a")));
}

TEST(Router, TellsAMissingCallFromAWrongMethod) {
  const std::vector<RouteName> table = {
      {"GET", "/v1/sessions"}, {"POST", "/v1/sessions"}, {"DELETE", "/v1/sessions/{id}"}};
  EXPECT_EQ(find_route(table, "POST", "/v1/sessions")->index, 1U);
  const auto missing = find_route(table, "GET", "/v1/nothing");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().status, 404);
  const auto wrong = find_route(table, "DELETE", "/v1/sessions");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().status, 405);
  EXPECT_THAT(wrong.error().message, HasSubstr("asked with GET, POST"));
}

}  // namespace
}  // namespace sallyport::control
