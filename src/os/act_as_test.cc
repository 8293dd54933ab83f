#include "os/act_as.h"

#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include "os/inside_test.h"
#include "os/safe_path.h"
#include "os/spawn.h"

namespace sallyport::os {
namespace {

namespace fs = std::filesystem;

// In no user database.
const Ids kAnna{.uid = 23'001, .gid = 23'001, .groups = {23'100}};
const Ids kBert{.uid = 23'002, .gid = 23'002};
constexpr gid_t kTeam = 23'100;  // Anna is in it

int error_of_opening(const std::string& path, int flags = O_RDONLY) {
  const Fd file(::open(path.c_str(), flags | O_CLOEXEC));
  return file ? 0 : errno;
}

class ActAsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can act as others";
    std::string name = "/tmp/sallyport-act-as-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    ASSERT_EQ(::chmod(name.c_str(), 0755), 0);
  }
  void TearDown() override {
    std::error_code ignored;
    if (!folder_.empty()) fs::remove_all(folder_, ignored);
  }

  std::string file(const std::string& name, uid_t uid, gid_t gid, mode_t mode) const {
    const std::string path = folder_ / name;
    std::ofstream(path) << "text";
    EXPECT_EQ(::chown(path.c_str(), uid, gid), 0);
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }
  std::string folder(const std::string& name, uid_t uid, mode_t mode) const {
    const std::string path = folder_ / name;
    fs::create_directory(path);
    EXPECT_EQ(::chown(path.c_str(), uid, uid), 0);
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }

  fs::path folder_;
};

TEST_F(ActAsTest, OpensWhatTheUserMayOpenAndNothingElse) {
  const std::string annas = file("annas", kAnna.uid, kAnna.gid, 0600);
  const std::string berts = file("berts", kBert.uid, kBert.gid, 0600);
  const std::string roots = file("roots", 0, 0, 0600);
  const std::string nobodys = file("nobodys", 0, 0, 0);
  {
    const ActAs anna(kAnna);
    EXPECT_EQ(error_of_opening(annas), 0);
    for (const std::string& path : {berts, roots, nobodys}) EXPECT_EQ(error_of_opening(path), EACCES) << path;
    EXPECT_EQ(error_of_opening(roots, O_WRONLY), EACCES);
    EXPECT_EQ(error_of_opening("/proc/1/environ"), EACCES);
  }
  for (const std::string& path : {annas, berts, roots, nobodys}) EXPECT_EQ(error_of_opening(path), 0) << path;
}

TEST_F(ActAsTest, EntersNoFolderOfOthersAndLearnsNotWhatIsThere) {
  const std::string berts = folder("berts", kBert.uid, 0700);
  const std::string inside = file("berts/file", kAnna.uid, kAnna.gid, 0644);
  fs::create_symlink(inside, folder_ / "link");
  const ActAs anna(kAnna);
  EXPECT_EQ(error_of_opening(inside), EACCES);
  EXPECT_EQ(error_of_opening(inside, O_PATH), EACCES);
  EXPECT_EQ(error_of_opening(folder_ / "link"), EACCES);
  EXPECT_FALSE(path_exists(inside));
  EXPECT_FALSE(path_exists(berts + "/none"));
  EXPECT_EQ(error_of_opening(berts, O_RDONLY | O_DIRECTORY), EACCES);
}

TEST_F(ActAsTest, HasTheUsersGroupsAndNotRoots) {
  const std::string teams = file("teams", kBert.uid, kTeam, 0640);
  const std::string of_roots_group = file("of_roots_group", kBert.uid, 0, 0640);
  const std::string of_berts_group = file("of_berts_group", 0, kBert.gid, 0640);
  const std::string all_but_the_team = file("all_but_the_team", kBert.uid, kTeam, 0604);
  const ActAs anna(kAnna);
  EXPECT_EQ(error_of_opening(teams), 0);
  EXPECT_EQ(error_of_opening(of_roots_group), EACCES);
  EXPECT_EQ(error_of_opening(of_berts_group), EACCES);
  EXPECT_EQ(error_of_opening(all_but_the_team), EACCES);
}

// Every capability by which files of others can be changed without opening them.
TEST_F(ActAsTest, ChangesNothingOfOthers) {
  const std::string berts = file("berts", kBert.uid, kBert.gid, 0644);
  const std::string annas = file("annas", kAnna.uid, kBert.gid, 0644);
  const std::string shared = folder("shared", 0, 01777);
  const std::string in_shared = file("shared/berts", kBert.uid, kBert.gid, 0666);
  const ActAs anna(kAnna);
  EXPECT_EQ(::chmod(berts.c_str(), 0666), -1);
  EXPECT_EQ(::chown(berts.c_str(), kAnna.uid, kAnna.gid), -1);
  EXPECT_EQ(::chown(annas.c_str(), kBert.uid, kBert.gid), -1);
  EXPECT_EQ(::utimensat(AT_FDCWD, berts.c_str(), nullptr, 0), -1);
  EXPECT_EQ(::unlink(in_shared.c_str()), -1);
  EXPECT_EQ(::rename(in_shared.c_str(), (shared + "/mine").c_str()), -1);
  EXPECT_EQ(::mknod((shared + "/device").c_str(), S_IFCHR | 0666, 0x0103), -1);
  EXPECT_EQ(::chroot(shared.c_str()), -1);
  EXPECT_EQ(::setgroups(0, nullptr), -1);
  EXPECT_EQ(::mount("none", shared.c_str(), "tmpfs", 0, nullptr), -1);
  // chmod(2): without CAP_FSETID that bit is dropped where the file's group is not the caller's.
  ASSERT_EQ(::chmod(annas.c_str(), 02755), 0);
  struct stat status{};
  ASSERT_EQ(::stat(annas.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & S_ISGID, 0U);
}

TEST_F(ActAsTest, HasNoCapabilityButToEndChildren) {
  const auto effective = [] {
    std::ifstream status("/proc/thread-self/status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("CapEff:")) return line.substr(line.find_last_of('\t') + 1);
    }
    return std::string();
  };
  const std::string before = effective();
  {
    const ActAs anna(kAnna);
    EXPECT_EQ(effective(), "0000000000000020");
  }
  EXPECT_EQ(effective(), before);
}

TEST_F(ActAsTest, MakesWhatIsTheUsers) {
  const std::string annas = folder("annas", kAnna.uid, 0700);
  {
    const ActAs anna(kAnna);
    std::ofstream(annas + "/made") << "text";
  }
  struct stat status{};
  ASSERT_EQ(::stat((annas + "/made").c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, kAnna.uid);
  EXPECT_EQ(status.st_gid, kAnna.gid);
}

TEST_F(ActAsTest, IsOverWhicheverWayItIsLeft) {
  const std::string roots = file("roots", 0, 0, 0);
  const auto before = acting_as();
  std::vector<gid_t> groups(64);
  const int count = ::getgroups(64, groups.data());
  try {
    const ActAs anna(kAnna);
    throw std::runtime_error("on the way");
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "on the way");
  }
  EXPECT_FALSE(before);
  EXPECT_FALSE(acting_as());
  EXPECT_EQ(::getegid(), 0U);
  EXPECT_EQ(error_of_opening(roots), 0);
  std::vector<gid_t> after(64);
  EXPECT_EQ(::getgroups(64, after.data()), count);
  EXPECT_EQ(after, groups);
}

TEST_F(ActAsTest, IsNobodyElsesWithin) {
  const ActAs anna(kAnna);
  {
    const ActAs again(kAnna);
  }
  {
    const ActAs nobody(std::nullopt);
  }
  ASSERT_TRUE(acting_as()) << "the inner one took nothing away";
  EXPECT_EQ(acting_as()->uid, kAnna.uid);
  EXPECT_EQ(acting_as()->groups, kAnna.groups);
  EXPECT_THROW(ActAs bert(kBert), std::logic_error);
  EXPECT_EQ(acting_as()->uid, kAnna.uid);
}

TEST_F(ActAsTest, IsNotForRoot) {
  EXPECT_THROW(ActAs root(Ids{}), std::logic_error);
  EXPECT_FALSE(acting_as());
}

TEST_F(ActAsTest, CannotBeHadByAnOrdinaryUser) {
  testing::Forked child([] {
    if (std::string failed = testing::become_user(kBert); !failed.empty()) return failed;
    try {
      const ActAs anna(kAnna);
    } catch (const std::system_error& error) {
      return std::string(error.code().value() == EPERM && ::geteuid() == kBert.uid ? "" : "half-way");
    }
    return std::string("acts as another");
  });
  EXPECT_EQ(child.finish(), "");
}

// What a user may do to whoever has the user's real, effective or saved uid.
TEST_F(ActAsTest, KeepsTheProcessOutOfTheUsersHand) {
  const pid_t ours = ::getpid();
  const ActAs anna(kAnna);
  testing::Forked child([ours] {
    if (!take_rights_back()) return std::string("cannot take them back");
    if (std::string failed = testing::become_user(kAnna); !failed.empty()) return failed;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    if (::kill(ours, 0) == 0) return std::string("can be signalled");
    if (::setpriority(PRIO_PROCESS, static_cast<id_t>(ours), 19) == 0)
      return std::string("can be slowed down");
    if (::sched_setaffinity(ours, sizeof one, &one) == 0) return std::string("can be held to one processor");
    return std::string();
  });
  EXPECT_EQ(child.finish(), "");
}

TEST_F(ActAsTest, EndsChildrenThatBecameTheUser) {
  const ActAs anna(kAnna);
  const auto child = spawn({.program = "/bin/sleep", .argv = {"sleep", "1000"}, .environment = {}});
  ASSERT_TRUE(child) << child.error().detail;
  EXPECT_TRUE(kill_child(*child, SIGKILL));
  EXPECT_EQ(wait_child(*child)->signal, SIGKILL);
}

std::string output_of(SpawnSpec spec) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return "pipe";
  const Fd reading(ends[0]);
  Fd writing(ends[1]);
  spec.descriptors.push_back({writing.get(), 1});
  const auto child = spawn(spec);
  if (!child) return child.error().detail;
  writing.reset();
  const auto text = read_whole(reading.get(), 4096);
  const auto status = wait_child(*child);
  return text && status && status->ok() ? *text : "failed";
}

TEST_F(ActAsTest, MakesChildrenTheUsersWhollyUnlessAnotherIsNamed) {
  const SpawnSpec spec{.program = "/bin/sh",
                       .argv = {"sh", "-c", "grep -hE '^(Uid|Gid|Groups|CapPrm|CapEff)' /proc/self/status"},
                       .environment = {"PATH=/usr/bin:/bin"},
                       .working_directory = "/"};
  const ActAs anna(kAnna);
  const std::string nothing = "0000000000000000\n";
  EXPECT_EQ(output_of(spec),
            "Uid:\t23001\t23001\t23001\t23001\nGid:\t23001\t23001\t23001\t23001\n"
            "Groups:\t23100 \nCapPrm:\t" +
                nothing + "CapEff:\t" + nothing);
  SpawnSpec other = spec;
  other.become = kBert;
  EXPECT_EQ(output_of(other),
            "Uid:\t23002\t23002\t23002\t23002\nGid:\t23002\t23002\t23002\t23002\n"
            "Groups:\t \nCapPrm:\t" +
                nothing + "CapEff:\t" + nothing);
  ASSERT_TRUE(acting_as()) << "what a child becomes is no business of ours";
}

}  // namespace
}  // namespace sallyport::os
