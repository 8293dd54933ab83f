#include "vault/inject.h"

#include <gtest/gtest.h>

#include "vault/base64_test.h"

namespace sallyport::vault {
namespace {

Secret secret(std::string_view text) {
  auto made = Secret::with_capacity(text.size());
  EXPECT_TRUE(made && made->append(text));
  return std::move(*made);
}

TEST(BasicAuthorization, NamesTheUserThatTheHostKindWants) {
  using policy::HostKind;
  for (const HostKind kind :
       {HostKind::Generic, HostKind::GitHub, HostKind::GitLab, HostKind::Gitea, HostKind::Bitbucket}) {
    const auto line = basic_authorization(kind, secret("token"));
    ASSERT_TRUE(line);
    EXPECT_EQ(line->expose(),
              "Authorization: Basic " + base64(std::string(policy::basic_user(kind)) + ":token"));
  }
}

// RFC 4648 by every remainder of a length by three.
TEST(BasicAuthorization, EncodesEveryLength) {
  const std::string user(policy::basic_user(policy::HostKind::GitHub));
  for (std::size_t size = 1; size <= 64; ++size) {
    const std::string token(size, '~');
    const auto line = basic_authorization(policy::HostKind::GitHub, secret(token));
    ASSERT_TRUE(line);
    EXPECT_EQ(line->expose(), "Authorization: Basic " + base64(user + ":" + token));
  }
}

TEST(BasicAuthorization, HoldsTheLargestCredential) {
  EXPECT_TRUE(basic_authorization(policy::HostKind::GitHub, secret(std::string(4096, 'x'))));
}

}  // namespace
}  // namespace sallyport::vault
