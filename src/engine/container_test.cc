#include "engine/container.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

namespace sallyport::engine {
namespace {

namespace json = boost::json;

// Numbers are compared as such, whatever their signs' types.
void expect_body(const ContainerSpec& spec, const char* expected) {
  EXPECT_EQ(json::parse(create_body(spec)), json::parse(expected)) << create_body(spec);
}

TEST(ContainerSpec, IsSealedWhateverIsAsked) {
  ContainerSpec spec;
  spec.image = "i";
  expect_body(spec, R"({"Image": "i", "Tty": false, "OpenStdin": false,
      "Healthcheck": {"Test": ["NONE"]}, "StopSignal": "SIGTERM", "HostConfig": {
      "NetworkMode": "none", "CapDrop": ["ALL"], "SecurityOpt": ["no-new-privileges"], "ReadonlyRootfs": true,
      "IpcMode": "private", "RestartPolicy": {"Name": "no"}, "Init": false}})");
}

TEST(ContainerSpec, SaysEverythingInTheEnginesWords) {
  ContainerSpec spec;
  spec.image = "i";
  spec.entrypoint = {"/e"};
  spec.command = {"a", "b\"c"};
  spec.environment = {"A=1"};
  spec.user = "1000:1000";
  spec.working_directory = "/w";
  spec.hostname = "h";
  spec.labels = {{"l", "v"}};
  spec.terminal = true;
  spec.keep_input = true;
  spec.join_network_of = "abc";
  spec.name_servers = {"198.18.0.1"};
  spec.root = RootFolder::Writable;
  spec.tmpfs = {{"/tmp", "rw"}};
  spec.mounts = {{"/a", "/b", MountAccess::ReadOnly}, {"/c", "/d", MountAccess::ReadWrite}};
  spec.seccomp_profile = R"({"defaultAction":"x"})";
  spec.pids = 1;
  spec.memory_bytes = 2;
  spec.nano_cpus = 3;
  spec.shm_bytes = 4;
  spec.ulimits = {{"nofile", 5, 6}};
  spec.init = true;
  expect_body(spec, R"({"Image": "i", "Entrypoint": ["/e"], "Cmd": ["a", "b\"c"], "Env": ["A=1"],
      "User": "1000:1000", "WorkingDir": "/w", "Hostname": "h", "Labels": {"l": "v"}, "Tty": true,
      "OpenStdin": true, "Healthcheck": {"Test": ["NONE"]}, "StopSignal": "SIGTERM", "HostConfig": {
      "NetworkMode": "container:abc", "Dns": ["198.18.0.1"], 
      "CapDrop": ["ALL"],
      "SecurityOpt": ["no-new-privileges", "seccomp={\"defaultAction\":\"x\"}"], "ReadonlyRootfs": false,
      "IpcMode": "private", "RestartPolicy": {"Name": "no"}, "Init": true, "Tmpfs": {"/tmp": "rw"},
      "Mounts": [
        {"Type": "bind", "Source": "/a", "Target": "/b", "ReadOnly": true, "BindOptions": {"Propagation": "private"}},
        {"Type": "bind", "Source": "/c", "Target": "/d", "ReadOnly": false, "BindOptions": {"Propagation": "private"}}],
      "PidsLimit": 1, "Memory": 2, "MemorySwap": 2, "NanoCpus": 3, "ShmSize": 4,
      "Ulimits": [{"Name": "nofile", "Soft": 5, "Hard": 6}]}})");
}

}  // namespace
}  // namespace sallyport::engine
