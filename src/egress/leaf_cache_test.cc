#include "egress/leaf_cache.h"

#include <gtest/gtest.h>

#include <string>

namespace sallyport::egress {
namespace {

using Time = std::chrono::steady_clock::time_point;

policy::HostName host(const std::string& name) {
  return *policy::HostName::parse(name);
}

class Leaves : public ::testing::Test {
 protected:
  X509* certificate(const std::string& name, Time now) {
    const auto leaf = cache_.leaf_for(host(name), now);
    return leaf ? (*leaf)->certificate.get() : nullptr;
  }

  LeafCache cache_{*net::make_session_ca("0123456789abcdef")};
  Time now_{std::chrono::hours(1000)};
};

TEST_F(Leaves, AreMadeOnceForEachName) {
  X509* first = certificate("a.test", now_);
  ASSERT_NE(first, nullptr);
  EXPECT_NE(certificate("b.test", now_), first);
  EXPECT_EQ(certificate("a.test", now_), first);
  EXPECT_EQ(cache_.size(), 2U);
}

TEST_F(Leaves, HaveOneKeyWhichIsNotTheAuthoritys) {
  const auto key_of = [&](const std::string& name) {
    return *net::private_key_pem(*(*cache_.leaf_for(host(name), now_))->key);
  };
  EXPECT_EQ(key_of("a.test"), key_of("b.test"));
  EXPECT_NE(key_of("a.test"), *net::private_key_pem(*cache_.authority().key));
}

TEST_F(Leaves, AreMadeAnewLongBeforeTheyExpire) {
  ASSERT_NE(certificate("a.test", now_), nullptr);
  const auto before =
      net::certificate_pem(*certificate("a.test", now_ + kLeafRefresh - std::chrono::seconds(1)));
  EXPECT_EQ(*net::certificate_pem(*certificate("a.test", now_)), *before);
  const auto after = net::certificate_pem(*certificate("a.test", now_ + kLeafRefresh));
  EXPECT_NE(*after, *before);
  EXPECT_EQ(cache_.size(), 1U);
}

TEST_F(Leaves, AreBoundedAndTheLeastUsedGoesFirst) {
  const auto first = *net::certificate_pem(*certificate("h0.test", now_));
  const auto second = *net::certificate_pem(*certificate("h1.test", now_));
  for (std::size_t i = 2; i < kMaxLeaves; ++i) {
    ASSERT_NE(certificate("h" + std::to_string(i) + ".test", now_), nullptr);
  }
  EXPECT_EQ(*net::certificate_pem(*certificate("h0.test", now_)), first);  // used: h1 is the oldest now
  now_ += std::chrono::seconds(1);
  ASSERT_NE(certificate("one-more.test", now_), nullptr);
  EXPECT_EQ(cache_.size(), kMaxLeaves);
  EXPECT_EQ(*net::certificate_pem(*certificate("h0.test", now_)), first);
  EXPECT_NE(*net::certificate_pem(*certificate("h1.test", now_)), second);
}

TEST_F(Leaves, ComeNoFasterThanTheirRate) {
  for (std::size_t i = 0; i < kMaxLeaves; ++i) {
    ASSERT_NE(certificate("h" + std::to_string(i) + ".test", now_), nullptr);
  }
  const auto refused = cache_.leaf_for(host("one-more.test"), now_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason, Reason::TooMany);
  EXPECT_NE(certificate("h0.test", now_), nullptr);
  EXPECT_NE(certificate("one-more.test", now_ + std::chrono::seconds(1)), nullptr);
}

}  // namespace
}  // namespace sallyport::egress
