#include "sandbox/made_repositories.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "sandbox/beneath.h"
#include "sandbox/folder_test.h"
#include "sandbox/git_links.h"

namespace sallyport::sandbox {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// A repository in a writable mount, and what the end of a session finds after a script was run in it.
class MadeRepositories : public ::testing::Test {
 protected:
  void shell(const std::string& script) const { ASSERT_EQ(folder_.shell(script), 0) << script; }

  void begin() {
    std::vector<Mount> mounts;
    mounts.push_back(*open_mount({.path = path()}, {}));
    auto guard = guard_workspace(mounts, {});
    ASSERT_TRUE(guard.has_value()) << guard.error().detail;
    guard_ = std::move(*guard);
    links_ = links_before(guard_);
  }

  std::vector<std::string> end_after(const std::string& script) {
    shell(script);
    std::vector<std::string> texts;
    for (const Finding& finding : set_links_aside(guard_, links_)) texts.push_back(finding.text);
    for (const Finding& finding : set_armed_repositories_aside(guard_, {}, {})) texts.push_back(finding.text);
    return texts;
  }

  std::string path() const { return folder_.path(); }
  bool ran() const { return fs::exists(path() + "/marker"); }

  TestFolder folder_;
  WorkspaceGuard guard_;
  std::set<std::string> links_;
};

constexpr char kRepository[] = "git init -q && touch f && git add f && git commit -q -m x";
// A submodule of the index alone.
constexpr char kNest[] = "git init -q nest && git -C nest commit -q --allow-empty -m x && git add nest";

TEST_F(MadeRepositories, FindsNothingInWhatGitMakes) {
  shell(kRepository);
  begin();
  EXPECT_THAT(end_after(kNest), IsEmpty());
}

TEST_F(MadeRepositories, AHookBehindThousandsOfSamplesIsSeen) {
  shell(kRepository);
  begin();
  EXPECT_THAT(
      end_after(std::string(kNest) +
                " && mkdir -p nest/.git/hooks && cd nest/.git/hooks && seq -f %g.sample 4200 | xargs touch"
                " && touch post-index-change"),
      ElementsAre(HasSubstr("its hooks cannot be read, or are too many")));
  EXPECT_FALSE(fs::exists(path() + "/nest/.git"));
}

TEST_F(MadeRepositories, AnIndexThatGitCannotListIsReported) {
  for (const char* damage : {"rm .git/index; mkfifo .git/index", "echo x > .git/index"}) {
    fs::remove_all(path() + "/.git");
    shell(kRepository);
    begin();
    EXPECT_THAT(end_after(damage), ElementsAre(HasSubstr("git cannot list the submodules"))) << damage;
  }
}

TEST_F(MadeRepositories, MoreModuleFoldersThanAreLookedAtAreReported) {
  shell(kRepository);
  begin();
  EXPECT_THAT(
      end_after("mkdir -p .git/modules/a .git/modules/b; cd .git/modules; seq -f a/%g 600 | xargs mkdir;"
                "seq -f b/%g 600 | xargs mkdir"),
      Contains(HasSubstr("more submodules than are looked at")));
}

// Each name there costs the kernel a thousand others: it is not looked at to its end, and what can run
// programs is found all the same.
TEST_F(MadeRepositories, ADeepTreeHidesNothing) {
  shell(kRepository);
  begin();
  const auto texts = end_after(
      std::string(kNest) +
      " && git -C nest config core.fsmonitor /bin/true && cd .git && for i in $(seq 15); do "
      "mkdir -p $(printf 'd/%.0s' $(seq 120)) && cd -P $(printf 'd/%.0s' $(seq 120)) || exit 1; done; "
      "seq 10000 | xargs touch");
  EXPECT_THAT(texts, Contains(HasSubstr("its config sets core.fsmonitor")));
  EXPECT_THAT(texts, Contains(HasSubstr("not all were looked at")));
  EXPECT_FALSE(fs::exists(path() + "/nest/.git"));
}

TEST_F(MadeRepositories, AModuleBehindALinkIsSetAside) {
  shell(kRepository);
  begin();
  EXPECT_THAT(end_after("git init -q --bare evil; mkdir -p .git/modules; ln -s ../../evil .git/modules/new"),
              Contains(HasSubstr(".git/modules/new a symbolic link")));
  EXPECT_FALSE(fs::is_symlink(path() + "/.git/modules/new"));
}

TEST_F(MadeRepositories, AWorkingTreeElsewhereIsSetAside) {
  shell(kRepository);
  begin();
  EXPECT_THAT(end_after(std::string(kNest) + " && git -C nest config core.worktree /elsewhere"),
              ElementsAre(HasSubstr("leads git to write in /elsewhere")));
}

TEST_F(MadeRepositories, ATopThatBecomesARepositoryWithoutAGitFolderIsSetAside) {
  begin();
  EXPECT_THAT(end_after("git init -q --bare . && git config --file config core.fsmonitor x"),
              ElementsAre(HasSubstr("HEAD, and with objects and refs beside it")));
  EXPECT_FALSE(fs::exists(path() + "/HEAD"));
}

TEST_F(MadeRepositories, LinksThroughWhichGitWouldWriteAreSetAside) {
  shell(kRepository);
  begin();
  EXPECT_THAT(end_after("ln -sf /elsewhere .git/COMMIT_EDITMSG; ln -sf /elsewhere .git/logs/HEAD"),
              UnorderedElementsAre(HasSubstr(".git/logs/HEAD a symbolic link"),
                                   HasSubstr(".git/COMMIT_EDITMSG a symbolic link")));
  EXPECT_FALSE(fs::is_symlink(path() + "/.git/COMMIT_EDITMSG"));
}

TEST_F(MadeRepositories, TheUsersOwnLinkStays) {
  shell(std::string(kRepository) + " && ln -s /elsewhere .git/mine");
  begin();
  EXPECT_THAT(end_after("true"), IsEmpty());
}

// The top's configuration is the user's, and so is not judged; what stands there may still not run, nor what
// a sandbox's index makes git fetch.
TEST_F(MadeRepositories, ListingRunsNothing) {
  shell(std::string(kRepository) + " && printf '#!/bin/sh\\ntouch " + path() +
        "/marker\\n' > payload && chmod +x payload && mkdir d && touch d/f && git add d && git commit -q -m 2"
        " && git sparse-checkout init --cone --sparse-index && git sparse-checkout set nothing"
        " && git config core.fsmonitor $PWD/payload && git config core.pager $PWD/payload"
        " && git config core.sshCommand $PWD/payload && git config core.gitProxy $PWD/payload"
        " && git config extensions.partialClone o && git config remote.o.promisor true"
        " && git config remote.o.url file://$PWD && git config remote.o.uploadpack $PWD/payload");
  begin();
  shell("rm -rf .git/objects/??");
  shell("git ls-files --stage || test -e marker");
  ASSERT_TRUE(ran()) << "the payload does nothing: this proves nothing";
  fs::remove(path() + "/marker");
  static_cast<void>(end_after("true"));
  EXPECT_FALSE(ran());
}

TEST(Beneath, NamesThatAreTooManyAreNoNames) {
  const TestFolder folder;
  std::ofstream(folder.path() + "/b") << "";
  std::ofstream(folder.path() + "/a") << "";
  const Fd opened(::open(folder.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  EXPECT_THAT(names_in(opened.get(), 2).value(), ElementsAre("a", "b"));
  EXPECT_FALSE(names_in(opened.get(), 1).has_value());
  const Fd file(::open((folder.path() + "/a").c_str(), O_PATH | O_CLOEXEC));
  EXPECT_FALSE(names_in(file.get(), 1).has_value());
}

TEST(Beneath, ReadsNothingThatIsNoPlainFileOrTooLong) {
  const TestFolder folder;
  const Fd opened(::open(folder.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  std::ofstream(folder.path() + "/four") << "1234";
  ASSERT_EQ(::mkfifo((folder.path() + "/fifo").c_str(), 0600), 0);
  fs::create_symlink("four", folder.path() + "/link");
  EXPECT_EQ(read_beneath(opened.get(), "four", 4), "1234");
  EXPECT_EQ(read_beneath(opened.get(), "four", 3), std::nullopt);
  for (const char* name : {"fifo", "link", "none", "../four", "."}) {
    EXPECT_EQ(read_beneath(opened.get(), name, 4), std::nullopt) << name;
  }
}

TEST(GuardLimits, TooManyWorktreesOrModulesRefuseTheStart) {
  for (const auto& [kind, number] : {std::pair{"worktrees", 257}, std::pair{"modules", 4097}}) {
    const TestFolder folder;
    const std::string place = folder.path() + "/.git/" + kind + "/";
    fs::create_directories(place);
    for (int each = 0; each < number; ++each) std::ofstream(place + std::to_string(each)) << "";
    std::vector<Mount> mounts;
    mounts.push_back(*open_mount({.path = folder.path()}, {}));
    const auto guard = guard_workspace(mounts, {});
    ASSERT_FALSE(guard.has_value()) << kind;
    EXPECT_THAT(guard.error().detail, HasSubstr("cannot be read, or")) << kind;
    EXPECT_THAT(guard.error().detail, HasSubstr(kind));
  }
}

}  // namespace
}  // namespace sallyport::sandbox
