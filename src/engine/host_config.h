// Whether a container that we did not make (adopt, compose) is as sealed as one of ours would be. Pure.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/container_state.h"

namespace sallyport::engine {

enum class CgroupVersion { One, Two };
enum class EngineKind { Docker, Podman };

// What an engine hides, or protects from writing, in every container that is not told otherwise.
inline constexpr std::string_view kMaskedPaths[] = {"/proc/kcore", "/proc/keys", "/proc/timer_list",
                                                    "/sys/firmware"};
inline constexpr std::string_view kReadonlyPaths[] = {"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys",
                                                      "/proc/sysrq-trigger"};

// What it is compared with.
struct Demands {
  // Podman tells neither what it hides nor all that it dropped: the caller looks at the container's process
  // for that (container/sealed.h).
  EngineKind engine = EngineKind::Docker;
  std::string seccomp_profile;       // our profile's JSON text
  std::string seccomp_profile_path;  // where the host has it: for the advice, and Podman takes nothing else
  CgroupVersion cgroup_version = CgroupVersion::Two;
  // Volumes that the engine was asked about and that are plain ones: a volume of the driver "local" may be a
  // mount of any folder of the host by its options, which the container's state does not show.
  std::set<std::string> plain_volumes;
  // Of mounts that whoever asks has judged himself, by another list.
  std::set<std::string> judged_sources;
};

// One sentence for each thing that is laxer than in a container of ours, with the line that a compose file
// must have, or must not have. Empty: it may be taken. What it does not judge, since only the caller can:
// which container "network_mode: container:ID" names, and where a source's symbolic links lead.
std::vector<std::string> problems(const ContainerState& container, const Demands& demands);

}  // namespace sallyport::engine
