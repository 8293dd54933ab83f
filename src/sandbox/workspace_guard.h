// The workspace is a door too: a Unix socket in it reaches a daemon of the host even through a read-only
// mount, and what is planted in its .git runs when the host's user next calls git there. What a mount can
// protect gets a further mount here, over a single place; what one cannot is listed for WorkspaceWatch, which
// also sees when a guard falls off. docs/sandbox.md has it in words, and what is left uncovered.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "os/process.h"
#include "sandbox/beneath.h"
#include "sandbox/mounts.h"
#include "sandbox/placeholder.h"

namespace sallyport::sandbox {

// Files and folders looked at in one mount for sockets; a tree with more is not searched to its end.
inline constexpr std::size_t kMaxSearchedPerMount = 200'000;
// And the sum of their paths' lengths, here and in every repository that is searched for links: what a name
// costs the kernel depends on how deep it lies.
inline constexpr std::size_t kMaxSearchedPathBytes = 32 * 1024 * 1024;

enum class Search { Whole, CutShort };

// A folder in which guarded places lie.
struct GuardedFolder {
  Fd fd;  // O_PATH
  std::string path;
};

// Has a mount over it, which stays there only while that name leads to that file.
struct FixedPlace {
  enum class Gone { FellOff, Fine };  // what it means when the name leads nowhere
  std::size_t folder = 0;             // of WorkspaceGuard::folders
  std::string name;                   // one part
  FileId id;
  Gone gone = Gone::FellOff;
};

// Was not there, and cannot be kept from being made.
struct AbsentPlace {
  enum class Answer {
    SetAside,  // it would run programs: renamed, and the session ends
    Report,
  };
  std::size_t folder = 0;
  std::string name;  // may have several parts
  Answer answer = Answer::SetAside;
};

// A place of the host's where git looks at the top of a writable mount.
struct GuardedTop {
  std::size_t folder = 0;
  bool has_repository = false;  // at the start; a .git file is one too
};

// A folder "worktrees" of a repository: what is in it leads working trees elsewhere to this repository.
struct GuardedWorktrees {
  std::size_t folder = 0;
};

struct WorkspaceGuard {
  // To be added to SandboxSpec::mounts.
  std::vector<Mount> mounts;
  std::vector<GuardedFolder> folders;
  std::vector<FixedPlace> fixed;
  std::vector<AbsentPlace> absent;
  std::vector<GuardedTop> tops;
  std::vector<GuardedWorktrees> worktrees;
  std::vector<std::string> git_folders;  // every guarded repository's, submodules' included; absolute
  // Taken away by their destructors: to be kept as long as the sandbox lives.
  std::vector<Placeholder> placeholders;
  // The sockets that are hidden (by /dev/null without the right to open it).
  std::vector<std::string> hidden_sockets;
  std::vector<std::string> notices;  // for the user's eyes
  Search search = Search::Whole;
  std::optional<os::Ids> client;  // by whose rights all that is looked at and set aside, when not by our own
  bool was_left_behind = false;   // an earlier run's warden was killed before it looked for what was planted
};

struct GuardInput {
  std::string policy_path;        // absolute; guarded by its own mount when it exists
  std::string home;               // for "~/" in git's configuration
  std::optional<os::Ids> client;  // by whose rights all of it is done, when not by our own: acted as already
  std::optional<os::Ids> become;  // the sandbox's ids when we are root
};

// Of every writable mount with a repository at its top, see docs/sandbox.md; of every read-only mount in a
// writable one: that it cannot be moved away. Of every mount: sockets. Refuses what an earlier sandbox may
// have planted and what cannot be guarded, with what to do about it.
Result<WorkspaceGuard> guard_workspace(std::span<const Mount> mounts, const GuardInput& input);

// A .git file at the top of a writable mount leads to a repository elsewhere (a linked worktree, a
// submodule). Its folder, to be mounted as well, when that folder says that it belongs to this mount; none
// when it lies in one of the mounts already. Refused when it does not say so: a sandbox could have written
// the file, to be given another repository the next time.
Result<std::vector<MountRequest>> linked_repositories(std::span<const Mount> mounts,
                                                      const std::optional<os::Ids>& become);

}  // namespace sallyport::sandbox
