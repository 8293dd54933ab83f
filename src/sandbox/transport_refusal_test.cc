#include "sandbox/transport_refusal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace sallyport::sandbox {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string ssh(const std::vector<std::string_view>& arguments) {
  return transport_refusal(kSshPath, arguments).value_or("(none)");
}

TEST(TransportRefusal, IsNobodysWhoWasNotStartedInPlaceOfSshOrAProxy) {
  EXPECT_EQ(transport_refusal("/run/sallyport/init", {}), std::nullopt);
  EXPECT_EQ(transport_refusal("ssh", {}), std::nullopt);
}

TEST(TransportRefusal, NamesHostAndRepositoryAndTheRuleToAdd) {
  EXPECT_THAT(
      ssh({"-o", "SendEnv=GIT_PROTOCOL", "-p", "2222", "git@Other.test", "git-upload-pack '/acme/x.git'"}),
      AllOf(HasSubstr("not to 'git@Other.test'"), HasSubstr("use https://other.test/acme/x\n"),
            HasSubstr("[[git]]\nrepo = \"other.test/acme/x\"\naccess = \"fetch\"\n")));
  EXPECT_THAT(ssh({"-4", "git@other.test", "git-receive-pack 'acme/x'"}),
              HasSubstr("repo = \"other.test/acme/x\"\naccess = \"push\"\n"));
  const std::vector<std::string_view> proxy = {"other.test", "9418"};
  EXPECT_THAT(
      transport_refusal(kGitProxyPath, proxy).value_or(""),
      AllOf(HasSubstr("no git://"), HasSubstr("'other.test'"), HasSubstr("\"other.test/OWNER/REPO\"")));
}

// A repository chooses these bytes, in .gitmodules for example, and a terminal shows them.
TEST(TransportRefusal, PutsNoHostileByteOnTheTerminalOrIntoARule) {
  const std::string text =
      ssh({"git@x.test\x1b]0;y\x07\nsallyport: all is well", "git-upload-pack '/a/b\"\nx = \"'"});
  EXPECT_THAT(text, AllOf(Not(HasSubstr("\x1b")), Not(HasSubstr("\x07")), Not(HasSubstr("\nsallyport: all")),
                          HasSubstr("repo = \"HOST/OWNER/REPO\"")));
  EXPECT_LT(
      ssh({std::string(100'000, 'a') + ".test", "git-upload-pack '/" + std::string(100'000, 'b') + "/c'"})
          .size(),
      2000U);
  for (const char* path : {"'../../etc'", "'a//b'", "'", "", "'only'", "'a/b' 'c'"}) {
    EXPECT_THAT(ssh({"git@x.test", std::string("git-upload-pack ") + path}), HasSubstr("x.test/OWNER/REPO"))
        << path;
  }
}

TEST(TransportRefusal, SaysWhatItCanWhenArgumentsAreMissing) {
  for (const std::vector<std::string_view>& arguments :
       {std::vector<std::string_view>{}, {"-o"}, {"-p", "22"}, {"-G"}, {"localhost"}}) {
    EXPECT_THAT(ssh(arguments), HasSubstr("HOST/OWNER/REPO"));
  }
  EXPECT_THAT(transport_refusal(kGitProxyPath, {}).value_or(""), HasSubstr("HOST/OWNER/REPO"));
}

}  // namespace
}  // namespace sallyport::sandbox
