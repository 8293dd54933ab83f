// Symbolic links in a repository's folder. Git writes through them: COMMIT_EDITMSG and the logs are opened by
// their names, and a sandbox that makes one a link has the host's user write a text of its choice (MERGE_MSG,
// the name of a branch) into any file of theirs. Git itself makes none.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "sandbox/workspace_guard.h"
#include "sandbox/workspace_watch.h"

namespace sallyport::sandbox {

// Files and folders looked at in one repository, objects left out.
inline constexpr std::size_t kMaxGitEntries = 200'000;

struct GitLinks {
  std::vector<std::string> names;  // below the folder
  Search search = Search::Whole;   // CutShort also when a folder cannot be read
};

// Through no link itself. The folders "objects" of repositories are left out: what git writes there is named
// by its content.
GitLinks links_in(int git_folder);

// At the start, of every guarded repository: the user's own, by absolute path.
std::set<std::string> links_before(const WorkspaceGuard& guard);
// When the sandbox is dead: what was not there `before` is set aside.
std::vector<Finding> set_links_aside(const WorkspaceGuard& guard, const std::set<std::string>& before);

}  // namespace sallyport::sandbox
