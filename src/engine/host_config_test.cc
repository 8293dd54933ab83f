#include "engine/host_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/real_state.h"

namespace sallyport::engine {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

namespace json = boost::json;

Demands demands(EngineKind engine = EngineKind::Docker) {
  return {engine,
          R"({"defaultAction": "SCMP_ACT_ALLOW"})",
          "/usr/share/sallyport/seccomp.json",
          CgroupVersion::Two,
          {"plain"},
          {"/var/lib/sallyport/containers/1/init"}};
}

struct Case {
  const char* pointer;
  json::value value;
  const char* problem;  // nullptr: none
};

void expect(const Case& each) {
  auto state = state_with(each.pointer, each.value);
  ASSERT_TRUE(state) << each.pointer << state.error().detail;
  if (std::string_view(each.pointer) != "/HostConfig/CgroupnsMode") state->host.cgroupns_mode = "private";
  const auto found = problems(*state, demands());
  if (each.problem == nullptr) {
    EXPECT_THAT(found, IsEmpty()) << each.pointer;
  } else {
    EXPECT_THAT(found, Contains(std::string(each.problem))) << each.pointer;
  }
}

json::value security(const char* option) {
  return json::array{"no-new-privileges:true", R"(seccomp={"defaultAction":"SCMP_ACT_ALLOW"})", option};
}

json::value bind(const char* source, const char* propagation = "rprivate") {
  return json::array{{{"Type", "bind"},
                      {"Source", source},
                      {"Destination", "/x"},
                      {"RW", true},
                      {"Propagation", propagation}}};
}

json::value volume(const char* name) {
  return json::array{{{"Type", "volume"},
                      {"Name", name},
                      {"Source", "/var/lib/docker/volumes/x"},
                      {"Destination", "/x"},
                      {"RW", true}}};
}

TEST(HostConfigProblems, AreNoneOfAContainerLikeOurs) {
  const Case cases[] = {
      {"/HostConfig/NetworkMode", "none", nullptr},
      {"/HostConfig/NetworkMode", "container:abc", nullptr},
      {"/HostConfig/CapDrop", {"all"}, nullptr},
      {"/HostConfig/IpcMode", "shareable", nullptr},
      {"/HostConfig/Runtime", "crun", nullptr},
      {"/HostConfig/SecurityOpt", security("apparmor=docker-default"), nullptr},
      {"/HostConfig/SecurityOpt", security("label=type:container_t"), nullptr},
      {"/HostConfig/CgroupnsMode", "private", nullptr},
      {"/Config/User", "1000", nullptr},
      {"/Mounts", volume("plain"), nullptr},
      {"/Mounts", bind("/home/user/work"), nullptr},
      {"/Mounts", bind("/etcetera"), nullptr},
      {"/Mounts", json::array{{{"Type", "tmpfs"}, {"Destination", "/x"}, {"RW", true}}}, nullptr},
  };
  for (const Case& each : cases) expect(each);
}

TEST(HostConfigProblems, NameTheFieldAndTheLineOfCompose) {
  const Case cases[] = {
      {"/HostConfig/Privileged", true, "Privileged is true: remove `privileged: true`"},
      {"/HostConfig/CapAdd", {"NET_ADMIN"}, "CapAdd has \"NET_ADMIN\": remove it from `cap_add:`"},
      {"/HostConfig/CapDrop", nullptr, "CapDrop is [], not ALL: add `cap_drop: [ALL]`"},
      {"/HostConfig/CapDrop", {"KILL", "CHOWN"}, "CapDrop is [KILL, CHOWN], not ALL: add `cap_drop: [ALL]`"},
      {"/HostConfig/SecurityOpt", nullptr,
       "SecurityOpt lacks no-new-privileges: add `security_opt: [\"no-new-privileges:true\"]`"},
      {"/HostConfig/SecurityOpt",
       {"no-new-privileges:false"},
       "SecurityOpt lacks no-new-privileges: add `security_opt: [\"no-new-privileges:true\"]`"},
      {"/HostConfig/SecurityOpt",
       {"no-new-privileges"},
       "SecurityOpt has no seccomp profile (the engine's own lets too much through): write `security_opt: "
       "[\"seccomp=/usr/share/sallyport/seccomp.json\"]`"},
      {"/HostConfig/SecurityOpt",
       {"seccomp:unconfined"},
       "SecurityOpt has \"seccomp=unconfined\": write `security_opt: "
       "[\"seccomp=/usr/share/sallyport/seccomp.json\"]`"},
      {"/HostConfig/SecurityOpt",
       {"seccomp={\"defaultAction\":\"SCMP_ACT_LOG\"}"},
       "SecurityOpt has another seccomp profile than ours: write `security_opt: "
       "[\"seccomp=/usr/share/sallyport/seccomp.json\"]`"},
      {"/HostConfig/SecurityOpt", security("seccomp=unconfined"),
       "SecurityOpt has \"seccomp=unconfined\": write `security_opt: "
       "[\"seccomp=/usr/share/sallyport/seccomp.json\"]`"},
      {"/HostConfig/SecurityOpt", security("apparmor=unconfined"),
       "SecurityOpt has \"apparmor=unconfined\": remove it from `security_opt:`"},
      {"/HostConfig/SecurityOpt", security("label=disable"),
       "SecurityOpt has \"label=disable\": remove it from `security_opt:`"},
      {"/HostConfig/SecurityOpt", security("mask=x"),
       "SecurityOpt has \"mask=x\": remove it from `security_opt:`"},
      {"/HostConfig/NetworkMode", "host",
       "NetworkMode is \"host\": write `network_mode: none` (and remove `networks:` and `ports:`)"},
      {"/HostConfig/NetworkMode", "bridge",
       "NetworkMode is \"bridge\": write `network_mode: none` (and remove `networks:` and `ports:`)"},
      {"/HostConfig/NetworkMode", "container:",
       "NetworkMode is \"container:\": write `network_mode: none` (and remove `networks:` and `ports:`)"},
      {"/HostConfig/NetworkMode", "ns:/proc/1/ns/net",
       "NetworkMode is \"ns:/proc/1/ns/net\": write `network_mode: none` (and remove `networks:` and "
       "`ports:`)"},
      {"/NetworkSettings/Networks", json::object{{"web", nullptr}},
       "NetworkSettings.Networks has \"web\": disconnect it: docker network disconnect web ours"},
      {"/HostConfig/PidMode", "host", "PidMode is \"host\": remove `pid: host`"},
      {"/HostConfig/PidMode", "container:abc", "PidMode is \"container:abc\": remove `pid: container:abc`"},
      {"/HostConfig/IpcMode", "host", "IpcMode is \"host\": remove `ipc: host`"},
      {"/HostConfig/IpcMode", "container:abc", "IpcMode is \"container:abc\": remove `ipc: container:abc`"},
      {"/HostConfig/UTSMode", "host", "UTSMode is \"host\": remove `uts: host`"},
      {"/HostConfig/UsernsMode", "host", "UsernsMode is \"host\": remove `userns_mode: host`"},
      {"/HostConfig/CgroupnsMode", "host", "CgroupnsMode is \"host\": remove `cgroup: host`"},
      {"/HostConfig/Devices", json::array{{{"PathOnHost", "/dev/kvm"}, {"PathInContainer", "/dev/kvm"}}},
       "Devices has \"/dev/kvm\": remove it from `devices:`"},
      {"/HostConfig/DeviceRequests", json::array{{{"Driver", "nvidia"}}},
       "DeviceRequests asks for devices of the driver \"nvidia\": remove `gpus:` and `deploy: resources: "
       "reservations: devices:`"},
      {"/HostConfig/DeviceCgroupRules",
       {"a *:* rwm"},
       "DeviceCgroupRules has \"a *:* rwm\": remove it from `device_cgroup_rules:`"},
      {"/HostConfig/VolumesFrom", {"other"}, "VolumesFrom has \"other\": remove it from `volumes_from:`"},
      {"/HostConfig/GroupAdd", {"docker"}, "GroupAdd has \"docker\": remove it from `group_add:`"},
      {"/HostConfig/Sysctls", nullptr, nullptr},
      {"/HostConfig/Runtime", "runsc",
       "Runtime is \"runsc\", which is not known here: remove `runtime: runsc`"},
      {"/HostConfig/MaskedPaths", json::array{},
       "MaskedPaths lacks /proc/kcore: remove \"systempaths=unconfined\" from `security_opt:`"},
      {"/HostConfig/MaskedPaths", nullptr,
       "MaskedPaths lacks /proc/kcore: remove \"systempaths=unconfined\" from `security_opt:`"},
      {"/HostConfig/ReadonlyPaths", json::array{},
       "ReadonlyPaths lacks /proc/sys: remove \"systempaths=unconfined\" from `security_opt:`"},
      {"/Config/User", "", "User is not set, which is root: write a number, as in `user: \"1000:1000\"`"},
      {"/Config/User", "root", "User is root: write a number, as in `user: \"1000:1000\"`"},
      {"/Config/User", "0:1000", "User is root: write a number, as in `user: \"1000:1000\"`"},
      {"/Config/User", "node",
       "User is \"node\", and only the image knows who that is: write a number, as in `user: \"1000:1000\"`"},
      {"/Config/User", "4294967296",
       "User is \"4294967296\", and only the image knows who that is: write a number, as in `user: "
       "\"1000:1000\"`"},
      {"/Config/User", "00",
       "User is \"00\", and only the image knows who that is: write a number, as in `user: \"1000:1000\"`"},
  };
  for (const Case& each : cases) {
    if (std::string_view(each.pointer) == "/HostConfig/Sysctls")
      continue;  // the real one has none to replace
    expect(each);
  }
}

TEST(HostConfigProblems, AreWhatGivesTheHostAway) {
  for (const auto& [source, folder] : std::initializer_list<std::pair<const char*, const char*>>{
           {"/", "/etc"},
           {"/etc", "/etc"},
           {"/etc/", "/etc"},
           {"//etc", "/etc"},
           {"/srv/../etc/passwd", "/etc"},
           {"/proc/1/root", "/proc"},
           {"/sys/fs/cgroup", "/sys"},
           {"/dev/shm", "/dev"},
           {"/run/docker.sock", "/run"},
           {"/var", "/var/run"},
           {"/var/run/docker.sock", "/var/run"},
           {"/root/.ssh", "/root"},
           {"/var/lib/docker/volumes", "/var/lib/docker"},
           {"/boot/grub", "/boot"}}) {
    const std::string problem = std::string("Mounts at /x has \"") + source + "\", which gives away " +
                                folder + " of the host: remove it from `volumes:`";
    expect({"/Mounts", bind(source), problem.c_str()});
  }
  expect({"/Mounts", bind("/srv/ci/docker.sock"),
          "Mounts at /x has \"/srv/ci/docker.sock\", which controls the host through its container engine: "
          "remove it from `volumes:`"});
  expect({"/Mounts", bind("/var/lib/sallyport/containers/1/init"), nullptr});
  expect({"/Mounts", bind("/var/lib/sallyport/containers/2/init"),
          "Mounts at /x has \"/var/lib/sallyport/containers/2/init\", which gives away /var/lib/sallyport of "
          "the host: remove it from `volumes:`"});
  expect({"/Mounts", bind("srv"),
          "Mounts at /x has \"srv\", which is no absolute path: remove it from `volumes:`"});
  expect({"/Mounts", bind("/srv", "rshared"),
          "Mounts at /x has propagation \"rshared\": write `bind: {propagation: private}`"});
  expect({"/Mounts", volume("smuggler"),
          "Mounts at /x has the volume \"smuggler\", which is not one of the engine's own folders: give that "
          "volume no `driver:` and no `driver_opts:`, or remove it from `volumes:`"});
  expect({"/Mounts", json::array{{{"Type", "cluster"}, {"Destination", "/x"}, {"RW", true}}},
          "Mounts at /x is of the unknown kind \"cluster\": remove it from `volumes:`"});
  // Not among the mounts, as it would be had the engine made them.
  expect({"/HostConfig/Binds",
          {"/:/host"},
          "Binds has \"/\", which gives away /etc of the host: remove it from `volumes:`"});
}

TEST(HostConfigProblems, AreSysctls) {
  auto state = state_with("/Id", "x");
  ASSERT_TRUE(state);
  state->host.cgroupns_mode = "";
  state->host.sysctls = {{"net.ipv4.ip_forward", "1"}};
  EXPECT_THAT(problems(*state, demands()),
              ElementsAre("Sysctls has net.ipv4.ip_forward=1: remove it from `sysctls:`"));
}

TEST(HostConfigProblems, DoNotCountTheCgroupNamespaceWhereTheHostsIsWhatAllHave) {
  const auto state = state_with("/HostConfig/CgroupnsMode", "host");
  ASSERT_TRUE(state);
  Demands version_one = demands();
  version_one.cgroup_version = CgroupVersion::One;
  EXPECT_THAT(problems(*state, version_one), IsEmpty());
}

TEST(HostConfigProblems, AreAllOfThemAtOnce) {
  const auto state = read_container_state(json::serialize(real_state("lax.json")));
  ASSERT_TRUE(state) << state.error().detail;
  const auto found = problems(*state, demands());
  for (const char* field :
       {"Privileged", "CapAdd", "CapDrop", "SecurityOpt", "NetworkMode", "PidMode", "IpcMode", "UTSMode",
        "UsernsMode", "Devices", "DeviceCgroupRules", "Mounts at /host", "Mounts at /v", "VolumesFrom",
        "MaskedPaths", "ReadonlyPaths", "Sysctls", "GroupAdd", "User"}) {
    EXPECT_THAT(found, Contains(HasSubstr(std::string(field) + " "))) << field;
  }
}

// Nobody's words reach a terminal as they are.
// As Podman tells of what it made sealed: it knows "ALL" by the names of its own set alone.
Result<ContainerState> podmans_state() {
  auto state = state_with("/HostConfig/NetworkMode", "container:abc");
  if (!state) return state;
  HostConfig& host = state->host;
  host.cgroupns_mode = "private";
  host.userns_mode = host.network_mode;
  host.cap_drop = {"CHOWN",   "DAC_OVERRIDE", "FOWNER",  "FSETID", "KILL",      "NET_BIND_SERVICE",
                   "SETFCAP", "SETGID",       "SETPCAP", "SETUID", "SYS_CHROOT"};
  host.security_opt = {"no-new-privileges", "seccomp=/usr/share/sallyport/seccomp.json"};
  host.masked_paths.reset();
  host.readonly_paths.reset();
  host.runtime = "oci";
  return state;
}

TEST(HostConfigProblems, AreNotWhatOnlyPodmanLeavesUnsaid) {
  const auto state = podmans_state();
  ASSERT_TRUE(state);
  EXPECT_THAT(problems(*state, demands(EngineKind::Podman)), IsEmpty());
  EXPECT_THAT(problems(*state, demands(EngineKind::Docker)),
              ElementsAre(HasSubstr("CapDrop"), HasSubstr("another seccomp profile"), HasSubstr("UsernsMode"),
                          HasSubstr("MaskedPaths"), HasSubstr("MaskedPaths"), HasSubstr("MaskedPaths"),
                          HasSubstr("MaskedPaths"), HasSubstr("ReadonlyPaths"), HasSubstr("ReadonlyPaths"),
                          HasSubstr("ReadonlyPaths"), HasSubstr("ReadonlyPaths"), HasSubstr("ReadonlyPaths"),
                          HasSubstr("Runtime")));
}

TEST(HostConfigProblems, AreThoseOfPodmansToo) {
  const auto sealed = podmans_state();
  ASSERT_TRUE(sealed);
  auto state = *sealed;
  state.host.cap_drop.pop_back();
  EXPECT_THAT(problems(state, demands(EngineKind::Podman)), ElementsAre(HasSubstr("CapDrop")));
  state = *sealed;
  state.host.security_opt[1] = "seccomp=/tmp/seccomp.json";
  EXPECT_THAT(problems(state, demands(EngineKind::Podman)),
              ElementsAre(HasSubstr("another seccomp profile")));
  state = *sealed;
  state.host.userns_mode = "container:other";
  EXPECT_THAT(problems(state, demands(EngineKind::Podman)), ElementsAre(HasSubstr("UsernsMode")));
  state = *sealed;
  state.host.masked_paths = {"/proc/kcore"};
  EXPECT_THAT(problems(state, demands(EngineKind::Podman)).size(), 3U);
}

TEST(HostConfigProblems, AreEscaped) {
  auto state = state_with("/HostConfig/PidMode", "\x1b[2J");
  ASSERT_TRUE(state);
  state->host.cgroupns_mode = "";
  EXPECT_THAT(problems(*state, demands()), ElementsAre("PidMode is \"\\x1b[2J\": remove `pid: \\x1b[2J`"));
}

}  // namespace
}  // namespace sallyport::engine
