#include "os/control_socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "os/local_test.h"

namespace sallyport::os {
namespace {

using ::testing::HasSubstr;

constexpr gid_t kOperators = 23456;

mode_t mode_of(const std::string& path) {
  struct stat facts{};
  EXPECT_EQ(::lstat(path.c_str(), &facts), 0) << path;
  return facts.st_mode & 07777;
}

gid_t group_of(const std::string& path) {
  struct stat facts{};
  EXPECT_EQ(::lstat(path.c_str(), &facts), 0) << path;
  return facts.st_gid;
}

class ControlSocketTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "other users and groups need root";
  }
  void make_folder(mode_t mode = 0700) {
    ASSERT_EQ(::mkdir((room_ / "run").c_str(), 0700), 0);
    ASSERT_EQ(::chmod((room_ / "run").c_str(), mode), 0);
  }
  std::string why_not(std::optional<gid_t> operators = std::nullopt) const {
    const auto socket = ControlSocket::open(path_, operators);
    return socket ? "" : socket.error().detail;
  }
  std::string why_not_connected(uid_t self = 0) const {
    const auto connection = connect_control(path_, self);
    return connection ? "" : connection.error().detail;
  }

  PrivateFolder room_;
  std::string path_ = room_ / "run/control.sock";
};

TEST_F(ControlSocketTest, IsItsOwnersAlone) {
  for (const mode_t mask : {0U, 022U, 077U, 0777U}) {
    const mode_t before = ::umask(mask);
    const auto socket = ControlSocket::open(path_, std::nullopt);
    ::umask(before);
    ASSERT_TRUE(socket) << socket.error().detail;
    EXPECT_EQ(mode_of(room_ / "run"), 0700U);
    EXPECT_EQ(mode_of(path_), 0600U);
    EXPECT_TRUE(connect_control(path_, 0));
  }
  EXPECT_FALSE(std::filesystem::exists(path_)) << "it is removed at the end";
}

TEST_F(ControlSocketTest, IsAGroupsWhereThereIsOne) {
  const auto socket = ControlSocket::open(path_, kOperators);
  ASSERT_TRUE(socket) << socket.error().detail;
  EXPECT_EQ(mode_of(room_ / "run"), 0750U);
  EXPECT_EQ(group_of(room_ / "run"), kOperators);
  EXPECT_EQ(mode_of(path_), 0660U);
  EXPECT_EQ(group_of(path_), kOperators);
  ASSERT_EQ(::chmod(room_.path().c_str(), 0711), 0);
  const auto connects = [&] { return connect_control(path_, kStranger) ? 0 : 1; };
  EXPECT_EQ(as_user(kStranger, kOperators, connects), 0);
  EXPECT_EQ(as_user(kStranger, kStranger, connects), 1);
}

TEST_F(ControlSocketTest, TakesRightsFromAFolderThatHadAGroup) {
  ASSERT_TRUE(ControlSocket::open(path_, kOperators));
  const auto socket = ControlSocket::open(path_, std::nullopt);
  ASSERT_TRUE(socket) << socket.error().detail;
  EXPECT_EQ(mode_of(room_ / "run"), 0700U);
  EXPECT_EQ(mode_of(path_), 0600U);
}

TEST_F(ControlSocketTest, ReplacesASocketAtWhichNobodyAnswers) {
  make_folder();
  listen_at(path_).reset();
  const auto socket = ControlSocket::open(path_, std::nullopt);
  ASSERT_TRUE(socket) << socket.error().detail;
  EXPECT_TRUE(connect_control(path_, 0));
}

TEST_F(ControlSocketTest, LeavesOneThatAnswersAndNamesItsProcess) {
  make_folder();
  const Fd other = listen_at(path_);
  const auto socket = ControlSocket::open(path_, std::nullopt);
  ASSERT_FALSE(socket);
  EXPECT_EQ(socket.error().reason, Reason::Overloaded);
  EXPECT_THAT(socket.error().detail, HasSubstr("already running: process " + std::to_string(::getpid())));
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(ControlSocketTest, IsWonByOneOfTwoDaemons) {
  auto first = ControlSocket::open(path_, std::nullopt);
  ASSERT_TRUE(first);
  const auto second = ControlSocket::open(path_, std::nullopt);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().detail, HasSubstr("already running: process " + std::to_string(::getpid())));
  // Not even when the first is not reachable (yet).
  ASSERT_EQ(::unlink(path_.c_str()), 0);
  EXPECT_THAT(why_not(), HasSubstr("already running: another process"));
}

TEST_F(ControlSocketTest, LeavesAtItsEndWhatIsNotItsOwn) {
  auto socket = ControlSocket::open(path_, std::nullopt);
  ASSERT_TRUE(socket);
  ASSERT_EQ(::unlink(path_.c_str()), 0);
  const Fd other = listen_at(path_);
  {
    const ControlSocket gone = std::move(*socket);
  }
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(ControlSocketTest, RefusesSymbolicLinks) {
  make_folder();
  ASSERT_EQ(::symlink("/tmp/elsewhere", path_.c_str()), 0);
  EXPECT_THAT(why_not(), HasSubstr("is a symbolic link"));
  EXPECT_THAT(why_not_connected(), HasSubstr("is a symbolic link"));
  ASSERT_EQ(::unlink(path_.c_str()), 0);

  std::filesystem::rename(room_ / "run", room_ / "real");
  ASSERT_EQ(::symlink("real", (room_ / "run").c_str()), 0);
  EXPECT_THAT(why_not(), HasSubstr("is a symbolic link"));
  EXPECT_THAT(why_not_connected(), HasSubstr("is a symbolic link"));

  path_ = room_ / "run/sub/control.sock";
  ASSERT_EQ(::mkdir((room_ / "real/sub").c_str(), 0700), 0);
  EXPECT_THAT(why_not(), HasSubstr("is a symbolic link"));
  EXPECT_THAT(why_not_connected(), HasSubstr("is a symbolic link"));
}

TEST_F(ControlSocketTest, RefusesAnotherFileInItsPlace) {
  make_folder();
  const Fd file(::open(path_.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  EXPECT_THAT(why_not(), HasSubstr("is some other file, not a socket"));
  EXPECT_THAT(why_not_connected(), HasSubstr("is some other file, not a socket"));
}

TEST_F(ControlSocketTest, RefusesFoldersThatOthersCanWrite) {
  make_folder();
  for (const mode_t mode : {0770U, 0702U, 01777U, 0720U}) {
    ASSERT_EQ(::chmod((room_ / "run").c_str(), mode), 0);
    EXPECT_THAT(why_not(), HasSubstr("can be written by group or others"));
    EXPECT_THAT(why_not_connected(), HasSubstr("can be written by group or others"));
  }
  ASSERT_EQ(::chmod((room_ / "run").c_str(), 0700), 0);
  for (const mode_t mode : {0770U, 0707U, 01777U}) {
    ASSERT_EQ(::chmod(room_.path().c_str(), mode), 0);
    EXPECT_THAT(why_not(), HasSubstr(room_.path() + " can be written by group or others"));
    EXPECT_THAT(why_not_connected(), HasSubstr("can be written by group or others"));
  }
  // Straight in /tmp.
  path_ = "/tmp/sallyport-test.sock";
  EXPECT_THAT(why_not(), HasSubstr("/tmp can be written by group or others"));
}

TEST_F(ControlSocketTest, RefusesForeignOwners) {
  make_folder();
  ASSERT_EQ(::chown((room_ / "run").c_str(), kStranger, 0), 0);
  EXPECT_THAT(why_not(), HasSubstr("belongs to uid 12345, neither to root nor to uid 0"));
  EXPECT_THAT(why_not_connected(), HasSubstr("belongs to uid 12345"));
  ASSERT_EQ(::chown((room_ / "run").c_str(), 0, 0), 0);

  listen_at(path_).reset();
  ASSERT_EQ(::chown(path_.c_str(), kStranger, 0), 0);
  EXPECT_THAT(why_not(), HasSubstr("belongs to uid 12345: remove it"));
  EXPECT_THAT(why_not_connected(), HasSubstr("belongs to uid 12345"));
}

TEST_F(ControlSocketTest, RefusesToServeAUserInRootsFolder) {
  make_folder();
  ASSERT_EQ(::chmod(room_.path().c_str(), 0711), 0);
  ASSERT_EQ(::chmod((room_ / "run").c_str(), 0711), 0);
  const auto refused = [&] {
    return why_not().find("belongs to uid 0, not to uid 12345") == std::string::npos ? 1 : 0;
  };
  EXPECT_EQ(as_user(kStranger, kStranger, refused), 0);
}

TEST_F(ControlSocketTest, RefusesPathsThatAreNotPlain) {
  const struct {
    std::string path;
    const char* why;
  } cases[] = {
      {"run/control.sock", "is not absolute"},
      {"", "is not absolute"},
      {room_ / "run/../control.sock", "is not plain"},
      {room_ / "run/./control.sock", "is not plain"},
      {room_ / "run//control.sock", "is not plain"},
      {room_ / "run/", "is not plain"},
      {"/control.sock", "needs a folder of its own"},
      {room_ / std::string(100, 'x') + "/control.sock", "has more than 107 bytes"},
      {room_ / std::string("run\0/control.sock", 17), "is not absolute"},
  };
  for (const auto& [path, why] : cases) {
    path_ = path;
    EXPECT_THAT(why_not(), HasSubstr(why)) << path;
    EXPECT_THAT(why_not_connected(), HasSubstr(why)) << path;
  }
}

TEST_F(ControlSocketTest, DoesNotMakeMoreThanTheLastFolder) {
  path_ = room_ / "a/b/control.sock";
  EXPECT_THAT(why_not(), HasSubstr("/a is not there"));
}

TEST_F(ControlSocketTest, ClientsTellThatNobodyServes) {
  const auto no_folder = connect_control(path_, 0);
  ASSERT_FALSE(no_folder);
  EXPECT_EQ(no_folder.error().reason, Reason::UpstreamUnreachable);
  make_folder();
  const auto no_socket = connect_control(path_, 0);
  ASSERT_FALSE(no_socket);
  EXPECT_EQ(no_socket.error().reason, Reason::UpstreamUnreachable);
  listen_at(path_).reset();
  ASSERT_EQ(::chmod(path_.c_str(), 0600), 0);
  const auto stale = connect_control(path_, 0);
  ASSERT_FALSE(stale);
  EXPECT_EQ(stale.error().reason, Reason::UpstreamUnreachable);
}

TEST_F(ControlSocketTest, ClientsRefuseModesThatNoDaemonMakes) {
  make_folder();
  const Fd other = listen_at(path_);
  for (const mode_t mode : {0666U, 0602U, 0777U, 0644U, 04600U}) {
    ASSERT_EQ(::chmod(path_.c_str(), mode), 0);
    EXPECT_THAT(why_not_connected(), HasSubstr("not 600 or 660"));
  }
  ASSERT_EQ(::chmod(path_.c_str(), 0600), 0);
  EXPECT_EQ(why_not_connected(), "");
  ASSERT_EQ(::chmod((room_ / "run").c_str(), 0755), 0);
  EXPECT_THAT(why_not_connected(), HasSubstr("is open to everybody"));
}

TEST_F(ControlSocketTest, ClientsRefuseAListenerThatIsAnotherUser) {
  make_folder();
  // A socket that looks well, whose listener has other ids: bound by root, listened to by the stranger.
  const Fd socket(::socket(AF_UNIX, SOCK_STREAM, 0));
  const sockaddr_un address = unix_address(path_);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::chmod(path_.c_str(), 0600), 0);
  ASSERT_EQ(as_user(kStranger, kStranger, [&] { return ::listen(socket.get(), 4); }), 0);
  EXPECT_THAT(why_not_connected(), HasSubstr("is uid 12345, neither root nor uid 0"));
}

TEST_F(ControlSocketTest, ClientsTrustTheirOwnDaemonAndNoOtherUsers) {
  ASSERT_EQ(::chown(room_.path().c_str(), kStranger, kStranger), 0);
  const auto own = [&] {
    const auto socket = ControlSocket::open(path_, std::nullopt);
    return socket && connect_control(path_, kStranger) ? 0 : 1;
  };
  EXPECT_EQ(as_user(kStranger, kStranger, own), 0);
  EXPECT_THAT(why_not_connected(0), HasSubstr("belongs to uid 12345, neither to root nor to uid 0"));
}

TEST(RootlessControlSocket, LiesInTheRuntimeFolder) {
  EXPECT_EQ(rootless_control_socket("/run/user/1000").value(), "/run/user/1000/sallyport/control.sock");
  EXPECT_THAT(rootless_control_socket(nullptr).error().detail, HasSubstr("XDG_RUNTIME_DIR is not set"));
  EXPECT_FALSE(rootless_control_socket(""));
}

}  // namespace
}  // namespace sallyport::os
