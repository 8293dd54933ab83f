// The two containers of a sandbox, as the engine is asked for them. Pure, but for names of files.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/container.h"
#include "engine/engine_info.h"
#include "os/process.h"
#include "sandbox/mounts.h"

namespace sallyport::container {

// Where sallyport-init finds its control socket in the pause.
inline constexpr char kPauseSocketInside[] = "/control";

// Processes and threads of a sandbox, when nobody says otherwise; Docker knows no limit then.
inline constexpr std::int64_t kDefaultPids = 4096;
inline constexpr std::int64_t kPausePids = 16;
inline constexpr std::int64_t kPauseMemoryBytes = 32 * 1024 * 1024;

// Zeros: the defaults.
struct Limits {
  std::int64_t memory_bytes = 0;  // half of the host's
  std::int64_t pids = 0;
  std::int64_t nano_cpus = 0;  // all processors
};

// `suffix` "-pause", or "".
std::string container_name(const std::string& session, std::string_view suffix);

// What is asked for in different words. Podman takes no profile, only its file; no owner of a folder in
// memory, but "U", the container's user; and it raises limits as far as the host's root may, unless they are
// named.
struct Dialect {
  engine::EngineKind engine = engine::EngineKind::Docker;
  std::string seccomp_file;  // "": the profile itself
  std::vector<engine::Ulimit> ulimits;
  // Without root: the workspace's owner is the same user inside, by a user namespace of the sandbox's own.
  bool keeps_id = false;
  bool limits = true;  // of memory, processes and processors
};

struct PauseWish {
  std::string image;
  os::Ids ids;
  std::string socket;  // on the host
  std::map<std::string, std::string> labels;
  Dialect dialect = {};
};
engine::ContainerSpec pause_spec(const PauseWish& wish);
// The same image beside a container that holds the namespace itself; there it proves what it sees.
engine::ContainerSpec prober_spec(const PauseWish& wish, const std::string& holder);

// A file of ours and its place inside.
struct PlacedFile {
  std::string source;
  std::string target;
};

struct WorkloadWish {
  std::string image;
  std::vector<std::string> image_environment;  // NAME=VALUE
  std::string pause;                           // the container's id
  os::Ids ids;
  std::string home;
  std::string init_program;       // on the host
  std::string socket;             // on the host
  std::vector<PlacedFile> files;  // read-only
  Limits limits;
  std::int64_t host_memory_bytes = 0;
  std::map<std::string, std::string> labels;
  Dialect dialect = {};
};
// The mounts are named by the paths that their descriptors have now; what is mounted in the end is looked at
// inside, by sallyport-init.
Result<engine::ContainerSpec> workload_spec(const WorkloadWish& wish,
                                            const std::vector<sandbox::Mount>& mounts);

}  // namespace sallyport::container
