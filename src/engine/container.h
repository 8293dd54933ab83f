// What we ask of the engine for a container of ours. What makes it a sandbox (no capability, no new
// privileges, no network of the engine's) is not up to the caller: there is no field for it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace sallyport::engine {

// Before the name of the container whose namespace another one shares.
inline constexpr char kJoinsContainer[] = "container:";

enum class MountAccess { ReadWrite, ReadOnly };

// A folder or a file of the host; propagation is private. The engine refuses one that is not there (it would
// make those of Binds).
struct BindMount {
  std::string source;  // absolute
  std::string target;  // absolute, inside
  MountAccess access = MountAccess::ReadOnly;
};

struct Ulimit {
  std::string name;  // "nofile"
  std::int64_t soft = 0;
  std::int64_t hard = 0;
};

enum class RootFolder { ReadOnly, Writable };

// Empty texts and lists leave it to the image, zeros to the engine.
struct ContainerSpec {
  std::string image;
  std::vector<std::string> entrypoint;
  std::vector<std::string> command;
  std::vector<std::string> environment;  // "NAME=value"
  std::string user;                      // "1000:1000"
  std::string working_directory;
  std::string hostname;  // not with join_network_of
  std::map<std::string, std::string> labels;
  bool terminal = false;
  bool keep_input = false;  // standard input stays open, for attach

  // The container whose network namespace this one shares; "": a new one, which holds nothing but loopback.
  std::string join_network_of;
  std::vector<std::string> name_servers;  // not with join_network_of
  RootFolder root = RootFolder::ReadOnly;
  std::map<std::string, std::string> tmpfs;  // {"/tmp": "rw,nosuid,nodev,size=64m"}
  std::vector<BindMount> mounts;
  std::string seccomp_profile;  // the JSON text itself; for Podman its file
  std::string user_namespace;   // "": the engine's

  std::int64_t pids = 0;
  std::int64_t memory_bytes = 0;  // swap included
  std::int64_t nano_cpus = 0;     // billionths of one processor
  std::int64_t shm_bytes = 0;
  std::vector<Ulimit> ulimits;
  bool init = false;  // the engine's init as process 1
};

// The body of POST /containers/create.
std::string create_body(const ContainerSpec& spec);

}  // namespace sallyport::engine
