#include "engine/container_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/real_state.h"

namespace sallyport::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(ContainerState, IsReadFromARealEnginesAnswer) {
  const auto state = read_container_state(boost::json::serialize(real_state("running.json")));
  ASSERT_TRUE(state) << state.error().detail;
  EXPECT_EQ(state->id, "5e61f7d1f497720ee8e912a8547b3f307c1faba8362c059417926b7270b58694");
  EXPECT_EQ(state->name, "ours");
  EXPECT_EQ(state->image, "sha256:1c6933cd1922e31920b68495ea4d01ae520deccd04854e579243c15e91effcf1");
  EXPECT_EQ(state->status, "running");
  EXPECT_TRUE(state->running);
  EXPECT_EQ(state->pid, 70);
  EXPECT_EQ(state->started_at, "2026-11-28T17:14:32.864325672Z");
  EXPECT_EQ(state->exit_code, 0);
  EXPECT_EQ(state->user, "1000:1000");
  EXPECT_THAT(state->labels, ElementsAre(Pair("dev.sallyport.session", "7")));
  EXPECT_THAT(state->host.cap_drop, ElementsAre("ALL"));
  EXPECT_THAT(state->host.cap_add, IsEmpty());
  EXPECT_EQ(state->host.network_mode, "none");
  EXPECT_EQ(state->host.runtime, "runc");
  EXPECT_TRUE(state->host.readonly_root);
  ASSERT_EQ(state->mounts.size(), 1U);
  EXPECT_EQ(state->mounts[0].source, "/srv");
  EXPECT_EQ(state->mounts[0].target, "/mounted");
  EXPECT_EQ(state->mounts[0].propagation, "private");
  EXPECT_FALSE(state->mounts[0].writable);
  EXPECT_THAT(state->networks, ElementsAre("none"));
}

TEST(ContainerState, IsRefusedWhenAFieldIsMissing) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "Id"},
      {"", "Name"},
      {"", "Image"},
      {"", "State"},
      {"", "Config"},
      {"", "HostConfig"},
      {"", "NetworkSettings"},
      {"/State", "Status"},
      {"/State", "Running"},
      {"/State", "Pid"},
      {"/State", "StartedAt"},
      {"/State", "ExitCode"},
      {"/HostConfig", "Privileged"},
      {"/HostConfig", "NetworkMode"},
      {"/HostConfig", "PidMode"},
      {"/HostConfig", "IpcMode"},
      {"/HostConfig", "UTSMode"},
      {"/HostConfig", "UsernsMode"},
      {"/HostConfig", "CapAdd"},
      {"/HostConfig", "CapDrop"},
      {"/HostConfig", "SecurityOpt"},
      {"/HostConfig", "Devices"},
      {"/HostConfig", "Binds"},
      {"/HostConfig", "VolumesFrom"},
      {"/HostConfig", "GroupAdd"},
      {"/HostConfig", "ReadonlyRootfs"},
      {"/Mounts/0", "Type"},
      {"/Mounts/0", "Destination"},
      {"/Mounts/0", "RW"},
  };
  for (const auto& [pointer, name] : cases) {
    const auto state = state_without(pointer, name);
    ASSERT_FALSE(state) << name;
    EXPECT_EQ(state.error().reason, Reason::EngineRefused);
    EXPECT_THAT(state.error().detail, HasSubstr(std::string(name) + ": missing"));
  }
}

TEST(ContainerState, IsRefusedWhenAFieldIsOfAnotherKind) {
  const std::tuple<const char*, boost::json::value, const char*> cases[] = {
      {"/Id", 7, "Id: not a string"},
      {"/State", {1, 2}, "State: not an object"},
      {"/State/Running", "yes", "State.Running: not true or false"},
      {"/State/Pid", "70", "State.Pid: not a whole number"},
      {"/State/Pid", 1.5, "State.Pid: not a whole number"},
      {"/State/Pid", 1e30, "State.Pid: not a whole number"},
      {"/HostConfig/CapAdd", "ALL", "HostConfig.CapAdd: not a list"},
      {"/HostConfig/CapAdd", boost::json::array{1}, "HostConfig.CapAdd: not a string"},
      {"/HostConfig/Privileged", 0, "HostConfig.Privileged: not true or false"},
      {"/Mounts", "none", "Mounts: not a list"},
      {"/Mounts/0", "none", "Mounts[0]: not an object"},
      {"/Mounts/0/RW", nullptr, "Mounts[0].RW: missing"},
      {"/Config/Labels/dev.sallyport.session", 7, "Config.Labels.dev.sallyport.session: not a string"},
  };
  for (const auto& [pointer, value, words] : cases) {
    const auto state = state_with(pointer, value);
    ASSERT_FALSE(state) << words;
    EXPECT_EQ(state.error().detail,
              std::string("the container engine's answer to inspect makes no sense: ") + words);
  }
}

TEST(ContainerState, IsRefusedWhenItIsNone) {
  for (const char* text : {"", "null", "[]", "\"x\"", "{", "{}", "{} {}"}) {
    EXPECT_FALSE(read_container_state(text)) << text;
  }
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "{\"a\":";
  EXPECT_THAT(read_container_state(deep).error().detail, HasSubstr("no JSON"));
}

}  // namespace
}  // namespace sallyport::engine
