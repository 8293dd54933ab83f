#include "config/trust_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <vector>

#include "config/config.h"
#include "config/testing.h"

namespace sallyport::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
namespace fs = std::filesystem;

constexpr char kPath[] = "/home/me/widget/sallyport.toml";
constexpr char kText[] = "version = 1\n";
constexpr uid_t kOtherUid = 12345;

class TrustStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "sallyport-trust-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override { fs::remove_all(root_); }

  fs::path folder() const { return root_ / "state/trust"; }
  TrustStore store() const { return TrustStore(folder()); }
  fs::path entry(const std::string& path = kPath) const { return folder() / sha256_hex(path); }
  // Why nothing can be found; a store that finds something, or nothing, is a failure.
  std::string error() const {
    const auto found = store().find(kPath);
    if (found) ADD_FAILURE() << (*found ? "found it" : "found nothing");
    return found ? "" : found.error().detail;
  }
  static mode_t mode(const fs::path& path) {
    struct stat facts{};
    EXPECT_EQ(::lstat(path.c_str(), &facts), 0) << path;
    return facts.st_mode & 07777;
  }

  fs::path root_;
};

TEST_F(TrustStoreTest, FindsWhatWasTrustedAtThatPathAndNothingElse) {
  EXPECT_EQ(store().find(kPath)->has_value(), false);
  EXPECT_FALSE(fs::exists(folder())) << "looking makes nothing";
  // Any bytes: they are kept, not read.
  for (const std::string& text : {std::string(kText), std::string(), std::string("\0\n\xff", 3)}) {
    ASSERT_TRUE(store().trust(kPath, text));
    const auto found = store().find(kPath);
    ASSERT_TRUE(found && *found);
    EXPECT_EQ((*found)->path, kPath);
    EXPECT_EQ((*found)->text, text);
    EXPECT_EQ((*found)->sha256, sha256_hex(text));
  }
  EXPECT_FALSE(*store().find("/other/sallyport.toml"));
  EXPECT_FALSE(*store().find("/home/me/widget/sallyport.toml/"));
}

TEST_F(TrustStoreTest, HashesAsTheStandardDoes) {
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_F(TrustStoreTest, IsItsOwnersAlone) {
  const mode_t before = ::umask(0);
  ASSERT_TRUE(store().trust(kPath, kText));
  ::umask(before);
  EXPECT_EQ(mode(folder()), 0700U);
  EXPECT_EQ(mode(entry()), 0600U);
}

TEST_F(TrustStoreTest, ListsAndRevokes) {
  EXPECT_THAT(*store().all(), IsEmpty());
  EXPECT_FALSE(*store().revoke(kPath));
  for (const char* path : {"/b", "/a\nb", "/c"}) ASSERT_TRUE(store().trust(path, kText));
  std::ofstream(folder() / "stranger") << "no entry";
  std::vector<std::string> paths;
  for (const Trusted& trusted : *store().all()) paths.push_back(trusted.path);
  EXPECT_THAT(paths, ElementsAre("/a\nb", "/b", "/c"));
  EXPECT_TRUE(*store().revoke("/b"));
  EXPECT_FALSE(*store().revoke("/b"));
  EXPECT_FALSE(*store().find("/b"));
  EXPECT_EQ(store().all()->size(), 2U);
}

TEST_F(TrustStoreTest, SurvivesAWriterThatDiedInTheMiddle) {
  ASSERT_TRUE(store().trust(kPath, kText));
  std::ofstream(entry().string() + ".new") << "sally";
  EXPECT_EQ((*store().find(kPath))->text, kText);
  ASSERT_TRUE(store().trust(kPath, "later"));
  EXPECT_EQ((*store().find(kPath))->text, "later");
  EXPECT_FALSE(fs::exists(entry().string() + ".new"));
}

TEST_F(TrustStoreTest, RefusesWhatOthersCouldHaveWritten) {
  struct Case {
    const char* name;
    std::function<void()> plant;
    const char* error;
  };
  const std::vector<Case> cases = {
      {"the folder is open to a group", [&] { fs::permissions(folder(), fs::perms(0770)); },
       "is open to group or others: chmod 700"},
      {"the folder can be read by others", [&] { fs::permissions(folder(), fs::perms(0704)); },
       "is open to group or others: chmod 700"},
      {"the folder is a link",
       [&] {
         fs::rename(folder(), root_ / "planted");
         fs::create_directory_symlink(root_ / "planted", folder());
       },
       "symbolic link"},
      {"the folder is a file",
       [&] {
         fs::remove_all(folder());
         std::ofstream(folder()) << "x";
       },
       "is not a folder"},
      {"the entry is a link",
       [&] {
         fs::rename(entry(), root_ / "planted");
         fs::create_symlink(root_ / "planted", entry());
       },
       "is a symbolic link"},
      {"the entry is a dangling link",
       [&] {
         fs::remove(entry());
         fs::create_symlink(root_ / "nothing", entry());
       },
       "is a symbolic link"},
      {"the entry is open to others", [&] { fs::permissions(entry(), fs::perms(0602)); },
       "can be used by group or others: chmod 600"},
      {"the entry is a pipe",
       [&] {
         fs::remove(entry());
         ASSERT_EQ(::mkfifo(entry().c_str(), 0600), 0);
       },
       "is not a regular file"},
      {"the entry is a folder",
       [&] {
         fs::remove(entry());
         fs::create_directory(entry());
         fs::permissions(entry(), fs::perms(0700));
       },
       "is not a regular file"},
  };
  for (const Case& c : cases) {
    fs::remove_all(root_ / "state");
    fs::remove_all(root_ / "planted");
    ASSERT_TRUE(store().trust(kPath, kText)) << c.name;
    c.plant();
    EXPECT_THAT(error(), HasSubstr(c.error)) << c.name;
    EXPECT_FALSE(store().all()) << c.name;
  }
}

TEST_F(TrustStoreTest, RefusesWhatBelongsToSomebodyElse) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  ASSERT_TRUE(store().trust(kPath, kText));
  ASSERT_EQ(::chown(entry().c_str(), kOtherUid, kOtherUid), 0);
  EXPECT_THAT(error(), HasSubstr("belongs to uid 12345"));
  ASSERT_TRUE(store().trust(kPath, kText));
  ASSERT_EQ(::chown(folder().c_str(), kOtherUid, kOtherUid), 0);
  EXPECT_THAT(error(), HasSubstr("belongs to uid 12345"));
  EXPECT_FALSE(store().trust(kPath, kText));
  EXPECT_FALSE(store().revoke(kPath));
}

TEST_F(TrustStoreTest, RefusesADamagedEntry) {
  ASSERT_TRUE(store().trust(kPath, kText));
  ASSERT_TRUE(store().trust("/other", "other"));
  const std::string good = read_for_test(entry());
  std::vector<std::string> damaged = {"", "x", good + "x", good.substr(1), read_for_test(entry("/other"))};
  for (std::size_t cut = 0; cut < good.size(); ++cut) damaged.push_back(good.substr(0, cut));
  for (std::size_t i = 0; i < good.size(); ++i) {
    damaged.push_back(good);
    damaged.back()[i] = static_cast<char>(damaged.back()[i] ^ 1);
  }
  for (const std::string& text : damaged) {
    std::ofstream(entry(), std::ios::binary) << text;
    EXPECT_THAT(error(), HasSubstr("is damaged: remove it")) << text;
  }
}

TEST_F(TrustStoreTest, HasLimits) {
  EXPECT_TRUE(store().trust(kPath, std::string(kMaxPolicyBytes, '#')));
  EXPECT_EQ((*store().find(kPath))->text.size(), kMaxPolicyBytes);
  EXPECT_FALSE(store().trust(kPath, std::string(kMaxPolicyBytes + 1, '#')));
  EXPECT_FALSE(store().trust(std::string(5000, '/'), kText));
  std::ofstream(entry(), std::ios::binary) << std::string(2 * kMaxPolicyBytes, '#');
  EXPECT_THAT(error(), HasSubstr("has more than"));

  ASSERT_TRUE(store().revoke(kPath));
  for (std::size_t i = 0; i < kMaxTrusted; ++i) {
    std::ofstream(entry(std::to_string(i))) << "";
  }
  const auto full = store().trust(kPath, kText);
  ASSERT_FALSE(full);
  EXPECT_THAT(full.error().detail, HasSubstr("are trusted already: revoke some"));
}

}  // namespace
}  // namespace sallyport::config
