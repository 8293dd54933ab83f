#include "os/safe_path.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace sallyport::os {
namespace {

class SafePath : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/sallyport-safe-path-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string make_file(const std::string& name, mode_t mode) {
    const std::string path = folder_ + "/" + name;
    const Fd file(::open(path.c_str(), O_CREAT | O_WRONLY, 0600));
    EXPECT_EQ(::write(file.get(), "content", 7), 7);
    EXPECT_EQ(::fchmod(file.get(), mode), 0);
    return path;
  }
  std::string error_of(const std::string& path) {
    auto file = open_private_file(path, ::geteuid());
    return file ? "" : file.error().detail;
  }

  std::string folder_;
};

TEST_F(SafePath, OpensAFileThatIsItsOwnersAlone) {
  for (const mode_t mode : {mode_t{0600}, mode_t{0400}}) {
    auto file = open_private_file(make_file("private", mode), ::geteuid());
    ASSERT_TRUE(file) << file.error().detail;
    EXPECT_EQ(read_whole(file->get(), 7).value(), "content");
  }
}

TEST_F(SafePath, OpensAFileInAnOpenFolderByTheSameRules) {
  make_file("private", 0600);
  make_file("open", 0640);
  ASSERT_EQ(::symlink("private", (folder_ + "/link").c_str()), 0);
  auto folder = open_private_folder(folder_);
  ASSERT_TRUE(folder) << folder.error().detail;
  const auto open = [&](const char* name) {
    return open_private_file_at(folder->get(), name, folder_ + "/" + name, ::geteuid());
  };
  auto file = open("private");
  ASSERT_TRUE(file) << file.error().detail;
  EXPECT_EQ(read_whole(file->get(), 7).value(), "content");
  EXPECT_EQ(open("open").error().detail,
            folder_ + "/open can be used by group or others: chmod 600 " + folder_ + "/open");
  EXPECT_EQ(open("link").error().detail, folder_ + "/link is a symbolic link: name the file itself");
  EXPECT_FALSE(open("missing"));
}

TEST_F(SafePath, OpensNoFolderThatIsMissingOrOpenToOthers) {
  const std::string path = folder_ + "/folder";
  EXPECT_FALSE(open_private_folder(path));
  EXPECT_FALSE(path_exists(path)) << "opening makes nothing";
  ASSERT_EQ(::mkdir(path.c_str(), 0700), 0);
  EXPECT_TRUE(open_private_folder(path));
  ASSERT_EQ(::chmod(path.c_str(), 0750), 0);
  EXPECT_EQ(open_private_folder(path).error().detail,
            path + " is open to group or others: chmod 700 " + path);
}

TEST_F(SafePath, NamesTheRemedyForAFileThatOthersCanUse) {
  for (const mode_t mode : {mode_t{0640}, mode_t{0604}, mode_t{0620}, mode_t{0601}}) {
    const std::string path = make_file("open", mode);
    EXPECT_EQ(error_of(path), path + " can be used by group or others: chmod 600 " + path);
  }
}

TEST_F(SafePath, RefusesWhatIsNoPlainFileOfTheUser) {
  const std::string path = make_file("private", 0600);
  const std::string link = folder_ + "/link";
  ASSERT_EQ(::symlink(path.c_str(), link.c_str()), 0);
  EXPECT_EQ(error_of(link), link + " is a symbolic link: name the file itself");
  const std::string fifo = folder_ + "/fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(error_of(fifo), fifo + " is not a regular file");
  EXPECT_EQ(error_of(folder_), folder_ + " is not a regular file");
  EXPECT_EQ(error_of(folder_ + "/none"), "open " + folder_ + "/none: No such file or directory");
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const std::string magic = "/proc/self/fd/" + std::to_string(file.get());
  EXPECT_EQ(error_of(magic), magic + " is a symbolic link: name the file itself");
  auto other = open_private_file(path, ::geteuid() + 1);
  if (::geteuid() == 0) {
    EXPECT_TRUE(other) << "root's own are accepted for everybody";
    ASSERT_EQ(::chown(path.c_str(), 12345, 12345), 0);
    EXPECT_EQ(error_of(path), path + " belongs to uid 12345: chown 0 " + path);
  } else {
    ASSERT_FALSE(other);
    EXPECT_NE(other.error().detail.find("belongs to uid"), std::string::npos);
  }
}

TEST_F(SafePath, ReadsNoMoreThanTheLimit) {
  const Fd file(::open(make_file("f", 0600).c_str(), O_RDONLY | O_CLOEXEC));
  auto content = read_whole(file.get(), 6);
  ASSERT_FALSE(content);
  EXPECT_EQ(content.error().reason, Reason::TooLarge);
}

TEST_F(SafePath, MakesAPrivateFolderWithItsParents) {
  const std::string path = folder_ + "/a/b/c";
  ASSERT_TRUE(make_private_folder(path));
  ASSERT_TRUE(make_private_folder(path)) << "one that is there already is as good";
  struct stat facts{};
  ASSERT_EQ(::stat(path.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777, 0700U);
}

TEST_F(SafePath, RefusesAFolderThatOthersControl) {
  const std::string path = folder_ + "/a";
  ASSERT_EQ(::mkdir(path.c_str(), 0700), 0);
  ASSERT_EQ(::chmod(path.c_str(), 0750), 0);
  EXPECT_EQ(make_private_folder(path).error().detail,
            path + " is open to group or others: chmod 700 " + path);
  const std::string link = folder_ + "/link";
  ASSERT_EQ(::chmod(path.c_str(), 0700), 0);
  ASSERT_EQ(::symlink(path.c_str(), link.c_str()), 0);
  EXPECT_EQ(make_private_folder(link).error().detail, link + " is not a folder (or is a symbolic link)");
  EXPECT_EQ(make_private_folder("relative").error().detail, "\"relative\" is not an absolute path");
  EXPECT_EQ(make_private_folder(make_file("file", 0600) + "/x").error().detail,
            "make " + folder_ + "/file/x: Not a directory");
}

}  // namespace
}  // namespace sallyport::os
