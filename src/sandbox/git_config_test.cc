#include "sandbox/git_config.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <fstream>

#include "sandbox/folder_test.h"

namespace sallyport::sandbox {
namespace {

std::string flat(const std::vector<GitConfigEntry>& entries) {
  std::string text;
  for (const GitConfigEntry& entry : entries) {
    text += entry.key();
    if (entry.value) text += '\n' + *entry.value;
    text += '\0';
  }
  return text;
}

struct Asked {
  bool understood = false;
  std::string entries;
};

// What git itself makes of the text.
Asked ask_git(const std::string& text) {
  const TestFolder folder;
  const std::string file = folder.path() + "/config";
  std::ofstream(file, std::ios::binary) << text;
  const std::string command = "git config --file " + file + " --no-includes --null --list 2>/dev/null";
  FILE* const pipe = ::popen(command.c_str(), "r");
  Asked asked;
  std::array<char, 4096> buffer{};
  for (std::size_t got = 0; (got = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    asked.entries.append(buffer.data(), got);
  }
  asked.understood = ::pclose(pipe) == 0;
  return asked;
}

class SameAsGit : public ::testing::TestWithParam<std::string> {};

TEST_P(SameAsGit, ReadsTheSameEntriesOrNone) {
  const Asked asked = ask_git(GetParam());
  const auto entries = parse_git_config(GetParam());
  ASSERT_EQ(entries.has_value(), asked.understood) << (entries ? flat(*entries) : entries.error().detail);
  if (entries) EXPECT_EQ(flat(*entries), asked.entries);
}

INSTANTIATE_TEST_SUITE_P(
    Table, SameAsGit,
    ::testing::Values("", "\n\n", "# only a comment", "[a]\n", "\xef\xbb\xbf[a]\nb=1\n", "[a]\n\tb = c\n",
                      "[a]\r\nb = c\r\n", "[A]\nB = C\n", "[remote \"Origin X\"]\nurl = x\n",
                      "[remote.Origin]\nurl = x\n", "[a \"\"]\nb = c\n", "[a   \"b\"]c=d", "[a]b=c",
                      "[a] b = c # d", "[a]\nb\n", "[a]\nb ; comment\n", "[a]\nb = \n",
                      "[a]\nb=", "[a]\nb = \"c ; d\" # e\n", "[a]\nb = c\\\nd\n", "[a]\nb = \"c\\\n d\"\n",
                      "[a]\nb = # x \\\nc = d\n", "[a]\nb = \\t\\n\\b\\\\\\\"\n", "[a]\nb = \"x\"y\"z\"\n",
                      "[a \"x\\\"y\\\\z\\q\"]\nb = c\n", "[a \"]\"]\nb = c\n", "[a \"b\" ]\nc = d\n",
                      "[a b]\nc = d\n", "[a\nb = c\n", "[a \"b\n\"]\nc = d\n", "[a]\nb = \"open\n",
                      "[a]\nb = \\q\n", "[a]\n1b = c\n", "[a]\nb_c = d\n", "[a]\nb-c = d\n", "[a]\nb: c\n",
                      "[a]\n=c\n", "[a]\nb = c\n[", "[a_b]\nc = d\n", "[a-b.c]\nd = e\n",
                      "[a]\n\tb\t=\tc\t\n", "[a]\nb = c\\", "[a]\n\fb = c\n", "[a]\nb=c=d", "[a]\nb = [x]\n",
                      "[a][b]c=d", "[a]\nb = https://user:pw@host/\\\nmore\n", "[a]\nb \\\n= c\n", "x\n",
                      "garbage [a]\n"));

TEST(GitConfig, TellsTheLineOfEveryEntry) {
  const auto entries = parse_git_config("# one\n[a]\n\tb = c\\\nd\n\te = f\n\n[g]h=i\n");
  ASSERT_TRUE(entries) << entries.error().detail;
  ASSERT_EQ(entries->size(), 3U);
  EXPECT_EQ((*entries)[0].line, 3U);
  EXPECT_EQ((*entries)[1].line, 5U);
  EXPECT_EQ((*entries)[2].line, 7U);
}

TEST(GitConfig, SaysWhereItCannotBeReadButNotWhat) {
  const auto entries = parse_git_config("[a]\nb = c\nsecret! = d\n");
  ASSERT_FALSE(entries);
  EXPECT_EQ(entries.error().detail, "line 3: a name without '='");
}

}  // namespace
}  // namespace sallyport::sandbox
