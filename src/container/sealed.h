// Whether a container is as sealed as one of ours: by what the engine says of it, and, where Podman does not
// say it, by what the kernel says of its first process.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/container_state.h"
#include "engine/host_config.h"

namespace sallyport::container {

// As engine::problems(). The caller makes sure that the container still runs afterwards.
std::vector<std::string> flaws(const engine::ContainerState& container, const engine::Demands& demands);

// Of /proc/PID/status and /proc/PID/mountinfo; `on_host` tells whether the host has a path at all. Pure.
std::vector<std::string> flaws_of_process(std::string_view status, std::string_view mounts,
                                          bool (*on_host)(std::string_view path));

}  // namespace sallyport::container
