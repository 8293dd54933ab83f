// What is guarded of one repository: everything that git reads there and that names a program, leads git to
// another configuration, or leads it elsewhere; with its submodules and its linked worktrees.
#pragma once

#include <string>

#include "sandbox/guard_builder.h"

namespace sallyport::sandbox {

// What git writes into the commondir of each linked worktree (builtin/worktree.c).
inline constexpr char kWorktreeCommondir[] = "../..\n";
// Of one repository; those beyond are an error at the start, and reported at the end.
inline constexpr std::size_t kMaxWorktrees = 256;

// Whether that folder below "worktrees" leads where it should. An empty commondir leads nowhere.
bool worktree_is_sound(int worktrees, const std::string& name);

// `name`: of the repository's folder below the mount, "" when the mount is one itself. `tree`: where its
// working tree is, absolute, for relative paths in its configuration.
Status guard_git_folder(GuardBuilder& build, const Mount& mount, const std::string& name,
                        const std::string& tree);

}  // namespace sallyport::sandbox
