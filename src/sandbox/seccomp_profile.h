// The system call filter of a container, for engines: the rules of syscall_rules.h in the JSON that Docker
// and Podman take as `--security-opt seccomp=FILE`. packaging/seccomp.json is this text, for compose files.
#pragma once

#include <string>

namespace sallyport::sandbox {

// One entry a line. The same on every architecture.
std::string seccomp_profile();

}  // namespace sallyport::sandbox
