#include "sandbox/private_clone.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sallyport::sandbox {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kId(40, 'a');

TEST(BundleHead, NamesTheRefsThatItBrings) {
  const auto head = parse_bundle_head("# v3 git bundle\n@object-format=sha1\n-" + kId + " a commit\n" + kId +
                                      " refs/heads/agent/x\n" + kId + " refs/sallyport/uncommitted\n" + kId +
                                      " HEAD\n\nPACK...");
  ASSERT_TRUE(head) << head.error().detail;
  EXPECT_THAT(head->refs, ElementsAre("refs/heads/agent/x", "refs/sallyport/uncommitted", "HEAD"));
  EXPECT_THAT(refspecs_for(*head, "0123"),
              ElementsAre("+refs/heads/*:refs/sallyport/0123/heads/*",
                          "+refs/sallyport/uncommitted:refs/sallyport/0123/uncommitted",
                          "+HEAD:refs/sallyport/0123/HEAD"));
}

// The clone's git made it, and that may be any program by then.
TEST(BundleHead, IsRefusedWhenItIsNotWhatWePacked) {
  const std::string first = "# v2 git bundle\n";
  std::string many = first;
  for (std::size_t i = 0; i <= kMaxBundleRefs; ++i) many += fmt::format("{} refs/heads/{}\n", kId, i);
  for (const std::string& text : std::vector<std::string>{
           std::string(), std::string("PACK\n\n"), std::string("# v4 git bundle\n\n"), first, first + kId,
           "# v3 git bundle\n@filter=blob:none\n\n", first + "@object-format=sha3\n\n", first + kId + "\n\n",
           first + "x refs/heads/a\n\n", first + kId + " refs/tags/a\n\n",
           first + kId + " refs/sallyport/other\n\n", first + kId + " refs/headsx\n\n", many + "\n"}) {
    const auto head = parse_bundle_head(text);
    ASSERT_FALSE(head) << text.substr(0, 80);
    EXPECT_THAT(head.error().detail, HasSubstr("the bundle of the private clone: "));
  }
}

TEST(BundleHead, AsksForNothingThatIsNotThere) {
  EXPECT_THAT(refspecs_for({{"refs/heads/x"}}, "0"), ElementsAre("+refs/heads/*:refs/sallyport/0/heads/*"));
  EXPECT_THAT(refspecs_for({}, "0"), IsEmpty());
}

TEST(CloneConfiguration, CarriesWhatTheCloneNeedsAndNoSecretOrProgram) {
  const auto entries = parse_git_config(
      "[core]\n\tbare = false\n\tsshCommand = evil\n\tautocrlf = input\n\tfsmonitor = evil\n"
      "[remote \"a\"]\n\turl = https://u:CaNaRy77@h.test/a\n\tfetch = +x:y\n"
      "[remote \"b\"]\n\turl = https://u:CaNaRy77@h.test/a?x\n"
      "[remote \"c\\\"d\"]\n\turl = git@h.test:a\n"
      "[http]\n\textraHeader = CaNaRy77\n[user]\n\tname = A \\\"B\\\"\n\tpassword = CaNaRy77\n"
      "[branch \"m\"]\n\tremote = a\n\tmerge = refs/heads/m\n[include]\n\tpath = x\n[alias]\n\tx = !evil\n");
  ASSERT_TRUE(entries) << entries.error().detail;
  EXPECT_EQ(clone_configuration(*entries),
            "[core]\n\tautocrlf = \"input\"\n"
            "[remote \"a\"]\n\turl = \"https://h.test/a\"\n[remote \"a\"]\n\tfetch = \"+x:y\"\n"
            "[remote \"c\\\"d\"]\n\turl = \"git@h.test:a\"\n"
            "[user]\n\tname = \"A \\\"B\\\"\"\n"
            "[branch \"m\"]\n\tremote = \"a\"\n[branch \"m\"]\n\tmerge = \"refs/heads/m\"\n");
}

}  // namespace
}  // namespace sallyport::sandbox
