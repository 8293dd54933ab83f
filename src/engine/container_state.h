// What the engine says about a container (inspect), read strictly: of what we go by nothing may be missing.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sallyport::engine {

struct DeviceRule {
  std::string on_host;  // "/dev/kvm"
  std::string inside;
};

// What a container was made with, as far as it can make it less of a sandbox.
struct HostConfig {
  bool privileged = false;
  std::vector<std::string> cap_add;
  std::vector<std::string> cap_drop;
  std::vector<std::string> security_opt;
  std::string network_mode;
  std::string pid_mode;
  std::string ipc_mode;
  std::string userns_mode;
  std::string uts_mode;
  std::string cgroupns_mode;
  std::vector<DeviceRule> devices;
  std::vector<std::string> device_requests;  // their drivers, "" too
  std::vector<std::string> device_cgroup_rules;
  std::vector<std::string> binds;
  bool readonly_root = false;
  std::map<std::string, std::string> sysctls;
  std::vector<std::string> volumes_from;
  std::string runtime;
  std::optional<std::vector<std::string>> masked_paths;    // nullopt: the engine does not say
  std::optional<std::vector<std::string>> readonly_paths;  // likewise
  std::vector<std::string> group_add;
  bool init = false;
};

// As it is mounted, wherever it comes from: binds, mounts, the image's volumes, those of other containers.
struct MountState {
  std::string type;  // "bind", "volume", "tmpfs"
  std::string name;  // of a volume
  std::string driver;
  std::string source;
  std::string target;
  std::string propagation;
  bool writable = false;
};

struct ContainerState {
  std::string id;
  std::string name;   // without the engine's "/"
  std::string image;  // the digest of its content: "sha256:..."
  std::string status;
  bool running = false;
  std::int64_t pid = 0;  // of the container's first process, as the engine sees it
  std::string started_at;
  std::int64_t exit_code = 0;
  bool out_of_memory = false;
  std::string user;
  bool terminal = false;
  std::map<std::string, std::string> labels;
  HostConfig host;
  std::vector<MountState> mounts;
  std::vector<std::string> networks;  // by name; "none" is one
};

// The answer of GET /containers/ID/json.
Result<ContainerState> read_container_state(std::string_view text);

}  // namespace sallyport::engine
