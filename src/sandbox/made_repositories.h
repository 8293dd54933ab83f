// Repositories that a sandbox made, or led git to, and that git enters when it is called at the top: a new
// .git, what stands in the index as a submodule, new folders below .git/modules. Looked at when the sandbox
// is dead; one whose configuration or hooks could run a program is set aside.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "os/process.h"
#include "sandbox/workspace_guard.h"
#include "sandbox/workspace_watch.h"

namespace sallyport::sandbox {

// The user's own submodules may run programs as well: by path, what would run at the start.
using ArmedBefore = std::map<std::string, std::string>;

// At the start, of tops that have a .gitmodules (for the others nothing is asked).
ArmedBefore armed_repositories(const WorkspaceGuard& guard, const std::optional<os::Ids>& become);
// At the end. What is as it was `before` stays.
std::vector<Finding> set_armed_repositories_aside(const WorkspaceGuard& guard, const ArmedBefore& before,
                                                  const std::optional<os::Ids>& become);

}  // namespace sallyport::sandbox
