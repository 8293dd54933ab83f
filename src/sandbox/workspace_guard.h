// The workspace is a door too: a Unix socket in it reaches a daemon of the host even through a read-only
// mount, and what is planted in its .git runs when the host's user next calls git there. The answer to both
// are further mounts over single places of a mount. What is left is said in SECURITY.md: files that the user
// runs by hand (Makefile, .envrc), repositories further down, and sockets that a daemon makes there later.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "sandbox/mounts.h"

namespace sallyport::sandbox {

// Files and folders looked at in one mount for sockets; a tree with more is not searched to its end.
inline constexpr std::size_t kMaxSearched = 200'000;

enum class Search { Whole, CutShort };

struct WorkspaceGuard {
  // To be added to SandboxSpec::mounts.
  std::vector<Mount> mounts;
  // The sockets that are hidden (by /dev/null without the right to open it).
  std::vector<std::string> hidden_sockets;
  Search search = Search::Whole;
};

// Of a writable mount with a repository at its top: .git stays where it is (it cannot be renamed or
// replaced), and .git/config, config.worktree, hooks and those of its submodules are read-only; a .git file
// is too. Of every mount: sockets.
Result<WorkspaceGuard> guard_workspace(const Mount& mount);

}  // namespace sallyport::sandbox
