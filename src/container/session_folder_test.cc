#include "container/session_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "os/local_test.h"

namespace sallyport::container {
namespace {

using ::testing::HasSubstr;

constexpr char kSession[] = "0123456789abcdef0123456789abcdef";

mode_t mode_of(const std::string& path) {
  struct stat facts{};
  EXPECT_EQ(::lstat(path.c_str(), &facts), 0) << path;
  return facts.st_mode & 07777;
}

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(SessionFolderTest, IsPrivateAndGoesWithAllThatIsInIt) {
  const os::PrivateFolder room;
  std::string path;
  {
    auto folder = SessionFolder::make(room / "containers", kSession);
    ASSERT_TRUE(folder) << folder.error().detail;
    path = folder->path();
    EXPECT_EQ(path, room / "containers/0123456789abcdef");
    EXPECT_EQ(mode_of(path), 0700U);
    EXPECT_EQ(mode_of(room / "containers"), 0700U);
    std::ofstream(path + "/more") << "x";
    const SessionFolder moved = std::move(*folder);
    EXPECT_TRUE(std::filesystem::exists(path)) << "it is the other one's now";
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_TRUE(std::filesystem::exists(room / "containers"));
}

TEST(SessionFolderTest, IsNotMadeOverAnother) {
  const os::PrivateFolder room;
  auto folder = SessionFolder::make(room.path(), kSession);
  ASSERT_TRUE(folder);
  EXPECT_THAT(SessionFolder::make(room.path(), kSession).error().detail, HasSubstr("File exists"));
  EXPECT_TRUE(std::filesystem::exists(folder->path()));
}

TEST(SessionFolderTest, HasEachContentOnceAndReadOnly) {
  const os::PrivateFolder room;
  auto folder = SessionFolder::make(room.path(), kSession);
  ASSERT_TRUE(folder);
  const std::vector<sandbox::GeneratedFile> wanted = {
      {"/etc/a", "one"}, {"/etc/b", std::string("two\0with zero", 13)}, {"/etc/c", "one"}, {"/etc/d", ""}};
  auto placed = folder->write(wanted);
  ASSERT_TRUE(placed) << placed.error().detail;
  ASSERT_EQ(placed->size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ((*placed)[i].target, wanted[i].path);
    EXPECT_EQ(content_of((*placed)[i].source), wanted[i].content);
    EXPECT_EQ(mode_of((*placed)[i].source), 0444U);
  }
  EXPECT_EQ((*placed)[0].source, (*placed)[2].source);
  EXPECT_NE((*placed)[0].source, (*placed)[1].source);
}

TEST(SessionFolderTest, DoesNotWriteOverWhatIsThere) {
  const os::PrivateFolder room;
  auto folder = SessionFolder::make(room.path(), kSession);
  ASSERT_TRUE(folder);
  ASSERT_TRUE(folder->write({{"/etc/a", "one"}}));
  EXPECT_FALSE(folder->write({{"/etc/a", "one"}}));
}

}  // namespace
}  // namespace sallyport::container
