// A new user and network namespace for the calling process, and what to do when the host forbids it.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/result.h"

namespace sallyport::os {

// unshare()s both and maps the caller's own uid and gid to themselves, and no other. Refused for uid 0: a
// user namespace whose uid is the host's root could write /proc/sys/kernel/core_pattern from inside.
Status enter_new_namespaces();

// The content of a file under /proc/sys, or nullopt when it is not there.
using SysctlReader = std::function<std::optional<std::string>(const std::string& path)>;
std::optional<std::string> read_sysctl(const std::string& path);

// Names the switch that made unshare() (or the first privileged step behind it) fail with `error`, and the
// remedy.
std::string explain_userns_failure(int error, const SysctlReader& reader);

}  // namespace sallyport::os
