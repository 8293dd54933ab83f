#include "session/identity.h"

#include <gtest/gtest.h>

namespace sallyport::session {
namespace {

TEST(Identity, OrdinaryUserRunsTheSandboxAsItself) {
  const auto ids = choose_identities({4321, 4321}, {0, 0}, "/home/somebody");
  ASSERT_TRUE(ids);
  EXPECT_EQ(ids->sandbox.uid, 4321U);
  EXPECT_FALSE(ids->become_sandbox || ids->become_gate || ids->become_vault);
  EXPECT_EQ(ids->home, "/home/somebody");
}

TEST(Identity, RootRunsTheSandboxAsTheWorkspacesOwner) {
  const auto ids = choose_identities({0, 0}, {4321, 4322}, "/root");
  ASSERT_TRUE(ids);
  EXPECT_EQ(ids->sandbox.uid, 4321U);
  EXPECT_EQ(ids->become_sandbox->gid, 4322U);
  EXPECT_NE(ids->become_gate->uid, 0U);
  EXPECT_NE(ids->become_vault->uid, 0U);
  EXPECT_NE(ids->become_gate->uid, ids->become_vault->uid);
  EXPECT_NE(ids->home, "/root");
}

TEST(Identity, RootInRootsWorkspaceIsRefusedWithTheRemedy) {
  const auto ids = choose_identities({0, 0}, {0, 0}, "/root");
  ASSERT_FALSE(ids);
  EXPECT_NE(ids.error().detail.find("chown"), std::string::npos);
}

}  // namespace
}  // namespace sallyport::session
