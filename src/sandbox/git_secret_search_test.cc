#include "sandbox/git_secret_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "sandbox/folder_test.h"

namespace sallyport::sandbox {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kUrl[] = "https://user:CaNaRy77@h.test/a";
constexpr char kRemote[] = "[remote \"o\"]\n\turl = https://user:CaNaRy77@h.test/a\n";

class GitSecretSearchTest : public ::testing::Test {
 protected:
  GitSecretSearchTest() : top_(fs::canonical(folder_.path()).string() + "/widget") { repository(".git"); }

  void repository(const std::string& name) const {
    fs::create_directories(top_ + "/" + name + "/objects");
    put(name + "/HEAD", "ref: refs/heads/main\n");
    put(name + "/config", "[core]\n\tbare = false\n");
  }
  void put(const std::string& name, const std::string& text) const {
    const fs::path path = top_ + "/" + name;
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }
  Result<GitSecretSearch> search() const {
    std::vector<Mount> mounts;
    mounts.push_back(*open_mount({top_}, {}));
    return search_git_secrets(mounts, fs::path(top_).parent_path().string());
  }
  // The places, relative to the mount.
  std::string places() const {
    const auto found = search();
    if (!found) return found.error().detail;
    EXPECT_THAT(text_of(*found), Not(HasSubstr("CaNaRy77")));
    std::string text;
    for (const FoundSecret& one : found->found) text += one.place.substr(top_.size() + 1) + ' ';
    return text;
  }

  TestFolder folder_;
  std::string top_;
};

TEST_F(GitSecretSearchTest, FindsNothingInACleanRepository) {
  put("README", kUrl);
  put(".gitmodules", "[submodule \"a\"]\n\tpath = a\n\turl = ../a\n");
  EXPECT_EQ(places(), "");
}

TEST_F(GitSecretSearchTest, LooksEverywhereWhereGitKeepsUrls) {
  for (const auto& [file, text, place] : std::vector<std::array<std::string, 3>>{
           {".git/config", kRemote, ".git/config:2 "},
           {".git/config.worktree", kRemote, ".git/config.worktree:2 "},
           {".git/worktrees/w/config.worktree", kRemote, ".git/worktrees/w/config.worktree:2 "},
           {".gitmodules", std::string("\n") + kRemote, ".gitmodules:3 "},
           {".lfsconfig", kRemote, ".lfsconfig:2 "},
           {".git-credentials", kUrl, ".git-credentials "},
           {"sub/.git-credentials", kUrl, "sub/.git-credentials "},
           {".git/FETCH_HEAD", "0\t\tbranch 'main' of https://user:CaNaRy77@h.test/a\n",
            ".git/FETCH_HEAD:1 "},
           {".git/logs/HEAD", "0 1 A <a> 1 +0\tclone: from https://user:CaNaRy77@h.test/a\n",
            ".git/logs/HEAD:1 "},
           {".git/logs/refs/heads/x", "0 1 A <a> 1 +0\tpull https://CaNaRy77@h.test/a\n",
            ".git/logs/refs/heads/x:1 "},
           {".git/remotes/o", std::string("URL: ") + kUrl, ".git/remotes/o:1 "},
           {".git/branches/o", kUrl, ".git/branches/o:1 "},
           {".git/config", std::string("# ") + kUrl, ".git/config:1 "}}) {
    put(file, text);
    EXPECT_EQ(places(), place) << file;
    fs::remove(top_ + "/" + file);
  }
}

TEST_F(GitSecretSearchTest, LooksIntoRepositoriesFurtherDown) {
  for (const char* folder : {".git/modules/a", ".git/modules/x/y", "deep/er/.git", "mirror.git"}) {
    repository(folder);
    put(std::string(folder) + "/config", kRemote);
    EXPECT_EQ(places(), std::string(folder) + "/config:2 ");
    fs::remove_all(top_ + "/" + folder);
  }
}

TEST_F(GitSecretSearchTest, LeavesFilesOfTestsAlone) {
  repository("tests/resources/repo.gitted");
  put("tests/resources/repo.gitted/config", kRemote);
  put("vendor/.gitmodules", kRemote);
  EXPECT_EQ(places(), "");
}

TEST_F(GitSecretSearchTest, FollowsIncludesAsFarAsTheSandboxSeesThem) {
  put(".git/config", "[include]\n\tpath = ../more\n[includeIf \"onbranch:x\"]\n\tpath = third\n");
  put("more", kRemote);
  put(".git/third", kRemote);
  EXPECT_EQ(places(), "more:2 .git/third:2 ");
  put(".git/config", "[include]\n\tpath = ../../outside\n");
  put("../outside", kRemote);
  EXPECT_EQ(places(), "");
  put(".git/config", "[include]\n\tpath = ~/widget/more\n");
  EXPECT_EQ(places(), "more:2 ");
}

TEST_F(GitSecretSearchTest, IncludesThatGoRoundEnd) {
  put(".git/config", "[include]\n\tpath = config\n\tpath = ../a\n");
  put("a", "[include]\n\tpath = b\n");
  put("b", "[include]\n\tpath = a\n");
  EXPECT_EQ(places(), "");
}

TEST_F(GitSecretSearchTest, FindsFilesInTheMountThatHoldACredential) {
  for (const char* config : {"[credential]\n\thelper = store --file pw\n", "[http]\n\tcookieFile = pw\n"}) {
    put(".git/config", config);
    fs::remove(top_ + "/pw");
    EXPECT_EQ(places(), "") << config;
    put("pw", "CaNaRy77");
    EXPECT_EQ(places(), ".git/config:2 ") << config;
  }
}

// Every file may have been planted by the run before.
TEST_F(GitSecretSearchTest, OpensNeitherPipesNorWhatLiesElsewhere) {
  fs::remove(top_ + "/.git/config");
  ASSERT_EQ(::mkfifo((top_ + "/.git/config").c_str(), 0666), 0);
  fs::create_symlink("/proc/self/environ", top_ + "/.gitmodules");
  put("../outside", kRemote);
  fs::create_symlink("../../outside", top_ + "/.git/config.worktree");
  EXPECT_EQ(places(), "");
  fs::remove(top_ + "/.git/config.worktree");
  put("inside", kRemote);
  fs::create_symlink("../inside", top_ + "/.git/config.worktree");
  EXPECT_EQ(places(), ".git/config.worktree:2 ");
}

TEST_F(GitSecretSearchTest, RefusesWhatItCannotJudge) {
  put(".git/config", "[core\n");
  EXPECT_THAT(places(), HasSubstr(".git/config: line 1: a section's head without an end"));
  put(".git/config", std::string(kMaxGitConfigBytes + 1, '\n'));
  EXPECT_THAT(places(), HasSubstr("is longer than 1048576 bytes"));
}

TEST_F(GitSecretSearchTest, ShowsAFewOfMany) {
  std::string text;
  for (int i = 0; i < 30; ++i) text += kRemote;
  put(".git/config", text);
  const auto found = search();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->found.size(), kMaxSecretsShown);
  EXPECT_THAT(text_of(*found), HasSubstr("and 10 more"));
  EXPECT_THAT(text_of(*found), HasSubstr("to mend it: git remote set-url o https://h.test/a\n"));
}

}  // namespace
}  // namespace sallyport::sandbox
