// Watches from outside what a WorkspaceGuard could not settle by a mount: that each guard still lies over
// what it was put over (a program of the host that renames another file there takes it off), and that nothing
// was planted where nothing was. What was planted and would run programs is set aside by renaming it.
//
// The sandbox can make as many changes as it likes: events are only a hint to look at every place again, and
// one more look at the end is what counts.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "sandbox/workspace_guard.h"

namespace sallyport::sandbox {

struct Finding {
  enum class Consequence {
    EndSession,  // the sandbox can, or tries to, do what it may not
    Report,
  };
  Consequence consequence = Consequence::Report;
  std::string text;  // names the path, what it means, and what to do
};

// Renames what is planted at `name` within its folder, so that git does not find it and people can look. The
// new last part, or nullopt when it could not be done.
std::optional<std::string> set_aside(const GuardedFolder& folder, const std::string& name);

class WorkspaceWatch {
 public:
  // Folders watched at once, of one session.
  static constexpr std::size_t kMaxFolders = 1024;

  // `guard` must outlive the watch, and stay where it is.
  static Result<WorkspaceWatch> begin(const WorkspaceGuard& guard);

  // Readable when something changed.
  int descriptor() const { return inotify_.get(); }
  // Takes what changed, and looks where it matters. Each place is found once.
  std::vector<Finding> on_change();
  // Looks everywhere.
  std::vector<Finding> look();

 private:
  explicit WorkspaceWatch(const WorkspaceGuard& guard) : guard_(&guard) {}

  void watch(std::size_t number);  // of guard_->folders
  void watch_worktree(const std::string& name);
  // A socket that came up in a watched folder.
  void look_for_socket(const GuardedFolder& folder, const std::string& name);
  bool take_events();
  void look_at_fixed(std::vector<Finding>& findings);
  void look_at_absent(std::vector<Finding>& findings);
  void look_at_tops(std::vector<Finding>& findings);
  void look_at_worktrees(std::vector<Finding>& findings);
  void add(std::vector<Finding>& findings, const std::string& path, Finding::Consequence consequence,
           std::string text);

  const WorkspaceGuard* guard_;
  Fd inotify_;
  std::size_t watched_ = 0;
  std::set<int> worktrees_;                     // watch descriptors of the folders "worktrees"
  std::set<int> worktree_;                      // and of those in them
  std::set<std::string, std::less<>> names_;    // those that matter
  std::set<std::string> found_;                 // paths
  std::map<int, std::size_t> watched_folders_;  // by watch descriptor, of guard_->folders
  std::vector<Finding> sockets_;
};

}  // namespace sallyport::sandbox
