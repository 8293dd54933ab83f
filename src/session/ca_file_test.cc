#include "session/ca_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include "sandbox/folder_test.h"

namespace sallyport::session {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class CaFileTest : public ::testing::Test {
 protected:
  void put(const std::string& text) { std::ofstream(path_) << text; }
  void expect_refused(const std::string& path, const std::string& why) {
    const auto written = CaFile::write(path, "new");
    ASSERT_FALSE(written) << path;
    EXPECT_THAT(written.error().detail, HasSubstr(why));
    EXPECT_EQ(entries(), entries_before_);
  }
  std::ptrdiff_t entries() const {
    return std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator());
  }
  void remember() { entries_before_ = entries(); }

  const sandbox::TestFolder folder_;
  const std::string path_ = folder_.path() + "/ca.pem";
  std::ptrdiff_t entries_before_ = 0;
};

TEST_F(CaFileTest, IsForAllToReadAndGoesWithItsObject) {
  const mode_t before = ::umask(077);
  {
    const auto written = CaFile::write(path_, "bundle");
    ::umask(before);
    ASSERT_TRUE(written) << written.error().detail;
    EXPECT_EQ(text_of(path_), "bundle");
    EXPECT_EQ(fs::status(path_).permissions(), fs::perms(0644));
    EXPECT_EQ(entries(), 1);
  }
  EXPECT_EQ(entries(), 0);
}

// Whoever has the old one open, or linked, keeps it as it was.
TEST_F(CaFileTest, TakesThePlaceOfAFileOfOurs) {
  put("old");
  fs::create_hard_link(path_, folder_.path() + "/link");
  const auto written = CaFile::write(path_, "new");
  ASSERT_TRUE(written) << written.error().detail;
  EXPECT_EQ(text_of(path_), "new");
  EXPECT_EQ(text_of(folder_.path() + "/link"), "old");
}

TEST_F(CaFileTest, LeavesWhatHasTakenItsPlace) {
  std::optional<CaFile> first(CaFile::write(path_, "first").value());
  std::optional<CaFile> second(CaFile::write(path_, "second").value());
  first.reset();
  EXPECT_EQ(text_of(path_), "second");
  second.reset();
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(CaFileTest, RefusesWhatItMayNotReplace) {
  fs::create_directory(folder_.path() + "/folder");
  std::ofstream(folder_.path() + "/target") << "kept";
  fs::create_symlink("target", folder_.path() + "/symlink");
  fs::create_symlink("nowhere", folder_.path() + "/dangling");
  ASSERT_EQ(::mkfifo((folder_.path() + "/fifo").c_str(), 0600), 0);
  remember();
  expect_refused(folder_.path() + "/folder", "is a folder");
  expect_refused(folder_.path() + "/folder/", "is a folder");
  expect_refused(folder_.path() + "/symlink", "is no regular file");
  expect_refused(folder_.path() + "/dangling", "is no regular file");
  expect_refused(folder_.path() + "/fifo", "is no regular file");
  expect_refused(folder_.path() + "/missing/ca.pem", "No such file or directory");
  EXPECT_EQ(text_of(folder_.path() + "/target"), "kept");
}

TEST_F(CaFileTest, RefusesAnotherUsersFile) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make one";
  put("theirs");
  ASSERT_EQ(::chown(path_.c_str(), 65534, 65534), 0);
  remember();
  expect_refused(path_, "belongs to another user");
  EXPECT_EQ(text_of(path_), "theirs");
}

}  // namespace
}  // namespace sallyport::session
