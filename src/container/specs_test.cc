#include "container/specs.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "os/local_test.h"
#include "sandbox/profile.h"
#include "sandbox/seccomp_profile.h"
#include "sandbox/transport_refusal.h"

namespace sallyport::container {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr std::int64_t kGigabyte = 1 << 30;

sandbox::Mount mount_of(const std::string& path, sandbox::Access access, std::string alias = "") {
  sandbox::Mount mount;
  mount.source.reset(::open(path.c_str(), O_PATH | O_CLOEXEC));
  mount.path = path;
  mount.alias = std::move(alias);
  mount.access = access;
  return mount;
}

std::vector<std::string> targets(const engine::ContainerSpec& spec) {
  std::vector<std::string> paths;
  for (const engine::BindMount& mount : spec.mounts) paths.push_back(mount.target);
  return paths;
}

engine::BindMount at(const engine::ContainerSpec& spec, const std::string& target) {
  const auto found = std::ranges::find(spec.mounts, target, &engine::BindMount::target);
  EXPECT_NE(found, spec.mounts.end()) << target;
  return found == spec.mounts.end() ? engine::BindMount{} : *found;
}

class WorkloadSpec : public ::testing::Test {
 protected:
  WorkloadSpec() {
    wish_.image = "sha256:abc";
    wish_.pause = "pause-id";
    wish_.ids = {.uid = 1000, .gid = 1001};
    wish_.home = "/home/me";
    wish_.init_program = "/opt/sallyport-init";
    wish_.socket = "/state/init";
    wish_.host_memory_bytes = 8 * kGigabyte;
    wish_.labels = {{"l", "v"}};
  }
  engine::ContainerSpec spec() {
    auto made = workload_spec(wish_, mounts_);
    EXPECT_TRUE(made) << made.error().detail;
    return std::move(made).value_or(engine::ContainerSpec{});
  }

  WorkloadWish wish_;
  std::vector<sandbox::Mount> mounts_;
  os::PrivateFolder room_;
};

TEST(PauseSpec, HoldsANetworkAndNothingElse) {
  const engine::ContainerSpec spec = pause_spec({.image = "pause:1",
                                                 .ids = {.uid = 1000, .gid = 1001},
                                                 .socket = "/state/pause",
                                                 .labels = {{"l", "v"}}});
  EXPECT_EQ(spec.image, "pause:1");
  EXPECT_THAT(spec.entrypoint, ElementsAre("/sallyport-init", "hold", "/control"));
  EXPECT_EQ(spec.user, "1000:1001");
  EXPECT_EQ(spec.hostname, "sandbox");
  EXPECT_THAT(spec.labels, ElementsAre(Pair("l", "v")));
  EXPECT_EQ(spec.join_network_of, "");
  EXPECT_THAT(spec.name_servers, ElementsAre("198.18.0.1"));
  EXPECT_THAT(targets(spec), ElementsAre("/control"));
  EXPECT_EQ(spec.mounts[0].source, "/state/pause");
  EXPECT_EQ(spec.root, engine::RootFolder::ReadOnly);
  EXPECT_THAT(spec.tmpfs, IsEmpty());
  EXPECT_EQ(spec.seccomp_profile, sandbox::seccomp_profile());
  EXPECT_EQ(spec.pids, kPausePids);
  EXPECT_EQ(spec.memory_bytes, kPauseMemoryBytes);
  ASSERT_EQ(spec.ulimits.size(), 1U);
  EXPECT_EQ(spec.ulimits[0].name, "core");
  EXPECT_EQ(spec.ulimits[0].hard, 1);
}

TEST_F(WorkloadSpec, StartsOurProgramInThePausesNetwork) {
  const engine::ContainerSpec made = spec();
  EXPECT_EQ(made.image, "sha256:abc");
  EXPECT_THAT(made.entrypoint, ElementsAre("/run/sallyport/init", "connect", "/run/sallyport/control"));
  EXPECT_THAT(made.command, IsEmpty());
  EXPECT_EQ(made.user, "1000:1001");
  EXPECT_EQ(made.working_directory, "/");
  EXPECT_EQ(made.join_network_of, "pause-id");
  EXPECT_THAT(made.name_servers, IsEmpty()) << "the pause has them";
  EXPECT_EQ(made.root, engine::RootFolder::ReadOnly);
  EXPECT_EQ(made.seccomp_profile, sandbox::seccomp_profile());
  for (const char* path : {sandbox::kInitPath, sandbox::kSshPath, sandbox::kGitProxyPath}) {
    EXPECT_EQ(at(made, path).source, "/opt/sallyport-init");
    EXPECT_EQ(at(made, path).access, engine::MountAccess::ReadOnly);
  }
  EXPECT_EQ(at(made, sandbox::kControlPath).source, "/state/init");
  EXPECT_EQ(at(made, sandbox::kControlPath).access, engine::MountAccess::ReadOnly);
}

TEST_F(WorkloadSpec, HasFoldersInMemory) {
  const auto tmpfs = spec().tmpfs;
  EXPECT_EQ(tmpfs.size(), 4U);
  EXPECT_THAT(tmpfs, Contains(Pair("/tmp", "rw,exec,nosuid,nodev,uid=1000,gid=1001,mode=1777")));
  EXPECT_THAT(tmpfs, Contains(Pair("/var/tmp", "rw,exec,nosuid,nodev,uid=1000,gid=1001,mode=1777")));
  EXPECT_THAT(tmpfs, Contains(Pair("/run", "rw,exec,nosuid,nodev,uid=1000,gid=1001,mode=0700")));
  EXPECT_THAT(tmpfs, Contains(Pair("/home/me", "rw,exec,nosuid,nodev,uid=1000,gid=1001,mode=0700")));
  wish_.home = "/";
  EXPECT_EQ(spec().tmpfs.size(), 3U);
}

TEST_F(WorkloadSpec, GivesTheImagesVariablesNoValueForOurProgram) {
  wish_.image_environment = {"PATH=/bin", "GLIBC_TUNABLES=x=y", "EMPTY=", "ODD", "=nameless"};
  EXPECT_THAT(spec().environment, ElementsAre("PATH=", "GLIBC_TUNABLES=", "EMPTY=", "ODD="));
}

TEST_F(WorkloadSpec, PlacesOurFilesReadOnly) {
  wish_.files = {{"/state/file-1", "/etc/gitconfig"}, {"/state/file-1", "/etc/other"}};
  for (const char* path : {"/etc/gitconfig", "/etc/other"}) {
    EXPECT_EQ(at(spec(), path).source, "/state/file-1");
    EXPECT_EQ(at(spec(), path).access, engine::MountAccess::ReadOnly);
  }
}

TEST_F(WorkloadSpec, MountsWhatItsDescriptorsLeadToNow) {
  std::filesystem::create_directories(room_ / "work/deep");
  std::filesystem::create_directory(room_ / "read");
  mounts_.push_back(mount_of(room_ / "work", sandbox::Access::ReadWrite, "/alias"));
  mounts_.push_back(mount_of(room_ / "work/deep", sandbox::Access::ReadOnly, room_ / "work/inner"));
  mounts_.push_back(mount_of(room_ / "read", sandbox::Access::ReadOnly));
  const std::string moved = room_ / "moved";
  std::filesystem::rename(room_ / "read", moved);
  const engine::ContainerSpec made = spec();
  EXPECT_EQ(at(made, room_ / "work").access, engine::MountAccess::ReadWrite);
  EXPECT_EQ(at(made, room_ / "work").source, room_ / "work");
  EXPECT_EQ(at(made, "/alias").source, room_ / "work");
  EXPECT_EQ(at(made, "/alias").access, engine::MountAccess::ReadWrite);
  EXPECT_EQ(at(made, room_ / "work/deep").access, engine::MountAccess::ReadOnly);
  EXPECT_EQ(at(made, room_ / "read").source, moved);
  EXPECT_THAT(targets(made), ::testing::Not(Contains(room_ / "work/inner"))) << "it lies in the workspace";
}

TEST_F(WorkloadSpec, FailsWithoutADescriptor) {
  mounts_.push_back(mount_of("/nonexistent/folder", sandbox::Access::ReadWrite));
  EXPECT_FALSE(workload_spec(wish_, mounts_));
}

TEST_F(WorkloadSpec, HasLimitsOfItsOwnOrTheUsers) {
  EXPECT_EQ(spec().pids, kDefaultPids);
  EXPECT_EQ(spec().memory_bytes, 4 * kGigabyte);
  EXPECT_EQ(spec().nano_cpus, 0);
  wish_.limits = {.memory_bytes = kGigabyte, .pids = 7, .nano_cpus = 1'500'000'000};
  EXPECT_EQ(spec().pids, 7);
  EXPECT_EQ(spec().memory_bytes, kGigabyte);
  EXPECT_EQ(spec().nano_cpus, 1'500'000'000);
}

}  // namespace
}  // namespace sallyport::container
