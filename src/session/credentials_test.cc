#include "session/credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

#include "os/file_watcher_test.h"
#include "os/safe_path.h"
#include "sandbox/folder_test.h"

namespace sallyport::session {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

// Two credentials in one folder. What is handed out is collected, and ends a running loop.
class CredentialsTest : public testing::Test {
 protected:
  // A failing test ends by this; one that passes never waits for it.
  static constexpr std::chrono::milliseconds kGivenUp{20'000};

  struct Handed {
    std::string name;
    std::string content;  // "" without a descriptor
    std::string problem;
  };

  CredentialsTest()
      : credentials_(
            watcher_, {{"forge", {path("forge"), {}}}, {"github", {path("github"), {}}}}, ::geteuid(),
            [this](const std::string& name, Fd file, const std::string& problem) {
              handed_.push_back({name, file ? os::read_whole(file.get(), 100).value() : "", problem});
              loop_.stop();
            }) {
    put("forge", "forge-token");
    put("github", "github-token");
  }

  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  void put(const std::string& name, const std::string& content) const {
    std::ofstream(path(name), std::ios::binary) << content;
    ASSERT_EQ(::chmod(path(name).c_str(), 0600), 0);
  }
  // What the loop hands out next.
  std::vector<Handed> next() {
    handed_.clear();
    const auto guard = loop_.after(kGivenUp, [this] { loop_.stop(); });
    EXPECT_TRUE(loop_.run());
    loop_.cancel(guard);
    return handed_;
  }

  sandbox::TestFolder folder_;
  os::EventLoop loop_;
  os::FileWatcher watcher_{loop_};
  std::vector<Handed> handed_;
  Credentials credentials_;
};

TEST_F(CredentialsTest, AreAllHandedOutOpen) {
  ASSERT_TRUE(credentials_.watch());
  credentials_.open_all();
  ASSERT_EQ(handed_.size(), 2U);
  EXPECT_EQ(handed_[0].name, "forge");
  EXPECT_EQ(handed_[0].content, "forge-token");
  EXPECT_EQ(handed_[0].problem, "");
  EXPECT_EQ(handed_[1].name, "github");
  EXPECT_EQ(handed_[1].content, "github-token");
  credentials_.open_all();
  EXPECT_EQ(handed_.size(), 4U);
}

TEST_F(CredentialsTest, OneThatIsReplacedIsHandedOutAgainAlone) {
  ASSERT_TRUE(credentials_.watch());
  put("github.new", "second-token");
  fs::rename(path("github.new"), path("github"));
  const auto handed = next();
  ASSERT_EQ(handed.size(), 1U);
  EXPECT_EQ(handed[0].name, "github");
  EXPECT_EQ(handed[0].content, "second-token");
  EXPECT_EQ(handed[0].problem, "");
}

TEST_F(CredentialsTest, OneThatIsWrittenInPlaceIsHandedOutAgain) {
  ASSERT_TRUE(credentials_.watch());
  std::ofstream(path("forge"), std::ios::binary) << "new";
  const auto handed = next();
  ASSERT_EQ(handed.size(), 1U);
  EXPECT_EQ(handed[0].name, "forge");
  EXPECT_EQ(handed[0].content, "new");
}

TEST_F(CredentialsTest, OneThatIsOpenedToOthersIsAProblemWithItsRemedy) {
  ASSERT_TRUE(credentials_.watch());
  ASSERT_EQ(::chmod(path("github").c_str(), 0644), 0);
  const auto opened = next();
  ASSERT_EQ(opened.size(), 1U);
  EXPECT_EQ(opened[0].name, "github");
  EXPECT_EQ(opened[0].content, "");
  EXPECT_THAT(opened[0].problem, HasSubstr("credential 'github'"));
  EXPECT_THAT(opened[0].problem, HasSubstr("chmod 600 " + path("github")));

  ASSERT_EQ(::chmod(path("github").c_str(), 0600), 0);
  const auto closed = next();
  ASSERT_EQ(closed.size(), 1U);
  EXPECT_EQ(closed[0].problem, "");
  EXPECT_EQ(closed[0].content, "github-token");
}

TEST_F(CredentialsTest, OneThatIsDeletedIsAProblem) {
  ASSERT_TRUE(credentials_.watch());
  fs::remove(path("forge"));
  const auto handed = next();
  ASSERT_EQ(handed.size(), 1U);
  EXPECT_EQ(handed[0].name, "forge");
  EXPECT_EQ(handed[0].content, "");
  EXPECT_THAT(handed[0].problem, HasSubstr(path("forge")));
}

TEST_F(CredentialsTest, OneThatBecomesALinkIsAProblem) {
  ASSERT_TRUE(credentials_.watch());
  fs::create_symlink(path("forge"), path("link"));
  fs::rename(path("link"), path("github"));
  const auto handed = next();
  ASSERT_EQ(handed.size(), 1U);
  EXPECT_EQ(handed[0].content, "");
  EXPECT_THAT(handed[0].problem, HasSubstr("symbolic link"));
}

TEST_F(CredentialsTest, WithoutTheirFolderCannotBeWatched) {
  Credentials credentials(watcher_, {{"github", {path("missing/token"), {}}}}, ::geteuid(),
                          [](const std::string&, Fd, const std::string&) {});
  const Status watched = credentials.watch();
  ASSERT_FALSE(watched);
  EXPECT_EQ(watched.error().reason, Reason::CredentialUnavailable);
  EXPECT_THAT(watched.error().detail, HasSubstr("credential 'github'"));
}

// Any session may have lost them.
TEST_F(CredentialsTest, AfterLostEventsThoseThatChangedAreHandedOutAlone) {
  ASSERT_TRUE(credentials_.watch());
  credentials_.open_all();
  const sandbox::TestFolder flooded_folder;
  os::FileWatcher::Group flooded(watcher_, [](const os::FileWatcher::Changes&) {});
  ASSERT_TRUE(flooded.add(flooded_folder.path(), IN_CREATE));
  os::overflow_queue(flooded_folder.path());
  std::ofstream(path("forge"), std::ios::binary) << "unseen";
  const auto handed = next();
  ASSERT_EQ(handed.size(), 1U);
  EXPECT_EQ(handed[0].name, "forge");
  EXPECT_EQ(handed[0].content, "unseen");
}

TEST_F(CredentialsTest, OfManySessionsNeedOneInotifyInstance) {
  const std::size_t before = os::open_inotify_instances();
  std::vector<std::unique_ptr<Credentials>> sessions;
  for (int each = 0; each < 200; ++each) {
    sessions.push_back(std::make_unique<Credentials>(
        watcher_, std::map<std::string, config::CredentialSource>{{"github", {path("github"), {}}}},
        ::geteuid(), [](const std::string&, Fd, const std::string&) {}));
    ASSERT_TRUE(sessions.back()->watch());
  }
  EXPECT_EQ(os::open_inotify_instances(), before + 1);
}

}  // namespace
}  // namespace sallyport::session
