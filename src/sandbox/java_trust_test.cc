#include "sandbox/java_trust.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sandbox/profile.h"

namespace sallyport::sandbox {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string kHeadOfNone("\xfe\xed\xfe\xed\0\0\0\2\0\0\0\0", 12);

TEST(JavaTrust, IsAKeyStoreWithItsDigestWhenThereIsNothing) {
  const std::string store = java_trust_store("no certificate at all\n");
  EXPECT_THAT(store, StartsWith(kHeadOfNone));
  EXPECT_EQ(store.size(), kHeadOfNone.size() + 20);
}

// That Java itself reads it is shown end to end.
TEST(JavaTrust, HoldsEveryCertificateOfTheBundle) {
  const std::string roots = read_system_roots().value_or("");
  std::size_t certificates = 0;
  for (auto at = roots.find("BEGIN CERT"); at != std::string::npos; at = roots.find("BEGIN CERT", at + 1)) {
    ++certificates;
  }
  const std::string store = java_trust_store(roots);
  ASSERT_GT(certificates, 1U);
  EXPECT_EQ(static_cast<unsigned char>(store[11]), certificates & 0xff);
  EXPECT_THAT(store, HasSubstr("root" + std::to_string(certificates - 1)));
}

}  // namespace
}  // namespace sallyport::sandbox
