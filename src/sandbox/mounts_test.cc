#include "sandbox/mounts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "sandbox/folder_test.h"

namespace sallyport::sandbox {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

DangerInput anna() {
  return {.own_homes = {"/home/anna"},
          .other_homes = {"/home/bert", "/root"},
          .sallyport_folders = {"/home/anna/.config/sallyport", "/home/anna/.local/state/sallyport"},
          .ssh_agent = "/tmp/ssh-abc/agent.17",
          .dbus_address = "unix:path=/srv/bus/session,guid=1234",
          .docker_host = "unix:///srv/engine/docker.sock"};
}

struct Case {
  const char* path;
  const char* why;  // "" when it is fine
};

class JudgeSource : public ::testing::TestWithParam<Case> {};

TEST_P(JudgeSource, SaysWhy) {
  const auto judged = judge_source(GetParam().path, dangerous_paths(anna()));
  if (*GetParam().why == '\0') {
    EXPECT_TRUE(judged.has_value()) << judged.error().detail;
    return;
  }
  ASSERT_FALSE(judged.has_value()) << GetParam().path;
  EXPECT_EQ(judged.error().reason, Reason::BadRequest);
  EXPECT_THAT(judged.error().detail, HasSubstr(GetParam().path));
  EXPECT_THAT(judged.error().detail, HasSubstr(GetParam().why));
  EXPECT_THAT(judged.error().detail, HasSubstr("--mount PATH"));
}

INSTANTIATE_TEST_SUITE_P(
    Table, JudgeSource,
    ::testing::Values(
        Case{"/", "whole host"}, Case{"/home", "contains the home folder /home/anna"},
        Case{"/home/anna", "home folder itself"}, Case{"/home/anna/widget", ""}, Case{"/home/anna/.sshx", ""},
        Case{"/home/anna/.config/nvim", ""}, Case{"/srv/widget", ""}, Case{"/tmp/widget", ""},
        Case{"/opt/a b", ""}, Case{"/etcetera", ""}, Case{"/home/anna/.ssh", "holds ssh keys"},
        Case{"/home/anna/.ssh/deep/down", "lies in /home/anna/.ssh"}, Case{"/home/anna/.aws", "AWS"},
        Case{"/home/anna/.config", "contains /home/anna/.config/gcloud"},
        Case{"/home/anna/.config/gcloud", "Google"}, Case{"/home/anna/.config/google-cloud", "Google"},
        Case{"/home/anna/.config/gh", "GitHub"}, Case{"/home/anna/.config/azure", "Azure"},
        Case{"/home/anna/.azure", "Azure"}, Case{"/home/anna/.netrc", "passwords"},
        Case{"/home/anna/.git-credentials", "git passwords"}, Case{"/home/anna/.kube", "cluster"},
        Case{"/home/anna/.gnupg", "private keys"}, Case{"/home/anna/.docker", "registry"},
        Case{"/home/anna/.npmrc", "registry"}, Case{"/home/anna/.pypirc", "registry"},
        Case{"/home/anna/.cargo", "contains /home/anna/.cargo/credentials"},
        Case{"/home/anna/.cargo/credentials.toml", "registry"}, Case{"/home/anna/.cargo/registry", ""},
        Case{"/home/anna/.terraform.d", "Terraform"}, Case{"/home/anna/.claude", "agent"},
        Case{"/home/anna/.codex", "agent"}, Case{"/home/anna/.gemini", "agent"},
        Case{"/home/anna/.config/sallyport", "Sallyport's own"},
        Case{"/home/anna/.local", "contains /home/anna/.local/state/sallyport"},
        Case{"/home/bert", "another user's home"}, Case{"/home/bert/project", "lies in /home/bert"},
        Case{"/home/bert/.ssh", "holds ssh keys"}, Case{"/root/x", "lies in /root"},
        Case{"/etc", "configuration"}, Case{"/etc/ssl/private", "lies in /etc"}, Case{"/proc", "kernel"},
        Case{"/proc/1/root", "lies in /proc"}, Case{"/sys/fs/cgroup", "lies in /sys"},
        Case{"/dev", "devices"}, Case{"/dev/shm/x", "lies in /dev"}, Case{"/var/run/docker.sock", "Docker"},
        Case{"/run/docker.sock", "Docker"}, Case{"/run", "contains"},
        Case{"/run/containerd/containerd.sock", "containerd"}, Case{"/run/podman", "podman"},
        Case{"/run/dbus/system_bus_socket", "D-Bus"}, Case{"/run/user/1000/bus", "lies in /run/user"},
        Case{"/run/sallyport", "Sallyport's own"}, Case{"/var", "contains"}, Case{"/var/tmp/work", ""},
        Case{"/tmp", "contains"}, Case{"/tmp/ssh-abc", "contains /tmp/ssh-abc/agent.17"},
        Case{"/srv/bus", "D-Bus"}, Case{"/srv/engine/docker.sock", "Docker"}, Case{"/srv", "contains"}));

TEST(DangerousPaths, CountAtBothEndsOfALink) {
  const TestFolder folder;
  std::filesystem::create_directories(folder.path() + "/keys");
  std::filesystem::create_directories(folder.path() + "/home");
  std::filesystem::create_symlink(folder.path() + "/keys", folder.path() + "/home/.ssh");
  const Dangers dangers = dangerous_paths({.own_homes = {folder.path() + "/home"}});
  EXPECT_FALSE(judge_source(folder.path() + "/keys", dangers).has_value());
  EXPECT_FALSE(judge_source(folder.path() + "/home/.ssh", dangers).has_value());
  EXPECT_TRUE(judge_source(folder.path() + "/keys2", dangers).has_value());
}

TEST(OtherHomes, AreThoseOfPeopleOnly) {
  const std::string passwd =
      "root:x:0:0:root:/root:/bin/bash\nwww:x:33:33::/var/www:/bin/false\nanna:x:1000:1000::/home/anna:/bin/"
      "sh\n"
      "bert:x:1001:1001::/home/bert/:/bin/sh\nnobody:x:65534:65534::/nonexistent:/bin/false\nbroken:line\n"
      "odd:x:12x:1::/odd:/bin/sh\n";
  EXPECT_THAT(other_homes(passwd, {"/home/anna"}), UnorderedElementsAre("/root", "/home/bert"));
}

TEST(ParseMount, ReadsPathAndAccess) {
  EXPECT_EQ(parse_mount("/a b:c")->path, "/a b:c");
  EXPECT_EQ(parse_mount("/a b:c")->access, Access::ReadWrite);
  EXPECT_EQ(parse_mount("x:ro")->path, "x");
  EXPECT_EQ(parse_mount("x:ro")->access, Access::ReadOnly);
  EXPECT_EQ(parse_mount("/x:ro/")->path, "/x:ro/");
  EXPECT_FALSE(parse_mount("").has_value());
  EXPECT_FALSE(parse_mount(":ro").has_value());
}

TEST(OpenMount, FollowsALinkAndKeepsItsNameAsAlias) {
  const TestFolder folder;
  std::filesystem::create_directories(folder.path() + "/real place");
  std::filesystem::create_symlink("real place", folder.path() + "/link");
  const auto mount = open_mount({.path = folder.path() + "/link/"}, {});
  ASSERT_TRUE(mount.has_value()) << mount.error().detail;
  EXPECT_EQ(mount->path, folder.path() + "/real place");
  EXPECT_EQ(mount->alias, folder.path() + "/link");
  struct stat status{};
  ASSERT_EQ(::stat(mount->path.c_str(), &status), 0);
  EXPECT_EQ(mount->inode, status.st_ino);
  EXPECT_EQ(mount->device, status.st_dev);
}

TEST(OpenMount, RefusesALinkToADangerousPath) {
  const TestFolder folder;
  std::filesystem::create_symlink("/etc", folder.path() + "/innocent");
  const auto mount = open_mount({.path = folder.path() + "/innocent"}, dangerous_paths({}));
  ASSERT_FALSE(mount.has_value());
  EXPECT_THAT(mount.error().detail, HasSubstr("/etc is the host's configuration"));
}

TEST(OpenMount, RefusesWhatIsMissing) {
  const auto mount = open_mount({.path = "/nowhere/at/all"}, {});
  ASSERT_FALSE(mount.has_value());
  EXPECT_THAT(mount.error().detail, HasSubstr("/nowhere/at/all"));
}

TEST(OpenMount, RefusesASocketItself) {
  const TestFolder folder;
  const std::string path = folder.path() + "/s";
  const Fd socket(::socket(AF_UNIX, SOCK_STREAM, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  const auto mount = open_mount({.path = path}, {});
  ASSERT_FALSE(mount.has_value());
  EXPECT_THAT(mount.error().detail, HasSubstr("neither a folder nor a regular file"));
}

}  // namespace
}  // namespace sallyport::sandbox
