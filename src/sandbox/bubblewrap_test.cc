// The call as text; what it makes is tested in runtime_test.cc and preflight_test.cc.

#include "sandbox/bubblewrap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "sandbox/trial_test.h"

namespace sallyport::sandbox {
namespace {

using ::testing::Contains;
using ::testing::Not;

bool has_run(const std::vector<std::string>& argv, const std::vector<std::string>& run) {
  return !std::ranges::search(argv, run).empty();
}

TEST(BubblewrapCall, NamesEveryWall) {
  const Trial trial;
  const auto call = bubblewrap_call(trial.spec);
  ASSERT_TRUE(call.has_value()) << call.error().detail;
  for (const char* flag :
       {"--unshare-user", "--disable-userns", "--unshare-pid", "--unshare-ipc", "--unshare-uts",
        "--unshare-cgroup-try", "--die-with-parent", "--as-pid-1", "--seccomp"}) {
    EXPECT_THAT(call->argv, Contains(flag));
  }
  EXPECT_TRUE(has_run(call->argv, {"--cap-drop", "ALL"}));
  EXPECT_TRUE(has_run(call->argv, {"--ro-bind", "/proc/sys", "/proc/sys"}));
  EXPECT_TRUE(has_run(call->argv, {"--ro-bind", "/usr", "/usr"}));
  EXPECT_TRUE(has_run(call->argv, {"--remount-ro", "/"}));
  EXPECT_TRUE(has_run(call->argv, {"--", "/run/sallyport/init", "3"}));
  // The network namespace is the one that we made.
  EXPECT_THAT(call->argv, Not(Contains("--unshare-net")));
  EXPECT_THAT(call->argv, Not(Contains("--unshare-all")));
  EXPECT_THAT(call->argv, Not(Contains("--bind-try")));
}

TEST(BubblewrapCall, GivesMountsByDescriptor) {
  const Trial trial;
  const auto call = bubblewrap_call(trial.spec);
  ASSERT_TRUE(call.has_value());
  const auto bind = std::ranges::find(call->argv, "--bind");
  ASSERT_NE(bind, call->argv.end());
  EXPECT_EQ((bind + 1)->find("/proc/self/fd/"), 0U);
  EXPECT_EQ(*(bind + 2), trial.workspace());
  const int target = std::stoi((bind + 1)->substr(14));
  const auto map = std::ranges::find(call->descriptors, target, &os::DescriptorMap::target_fd);
  ASSERT_NE(map, call->descriptors.end());
  EXPECT_EQ(map->source_fd, trial.spec.mounts.front().source.get());
}

TEST(BubblewrapCall, StartsWithNoEnvironmentInsideTheNamespaces) {
  const Trial trial;
  const auto call = bubblewrap_call(trial.spec);
  ASSERT_TRUE(call.has_value());
  const os::SpawnSpec spawn = spawn_spec(trial.spec, *call);
  EXPECT_TRUE(spawn.environment.empty());
  EXPECT_EQ(spawn.user_namespace, trial.spec.user_namespace);
  EXPECT_EQ(spawn.net_namespace, trial.spec.net_namespace);
  EXPECT_EQ(spawn.become.has_value(), trial.spec.become.has_value());
}

}  // namespace
}  // namespace sallyport::sandbox
