// Watches from outside what a WorkspaceGuard could not settle by a mount: that each guard still lies over
// what it was put over (a program of the host that renames another file there takes it off), and that nothing
// was planted where nothing was. What was planted and would run programs is set aside by renaming it.
//
// The sandbox can make as many changes as it likes, and make the watcher lose events, those of other sessions
// too: events are only a hint to look at every place again, and one more look at the end is what counts.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "os/file_watcher.h"
#include "sandbox/beneath.h"
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

  // Called with what is found after a change. It may end the watch.
  using OnFindings = std::function<void(const std::vector<Finding>&)>;

  // `watcher` and `guard` must outlive the watch.
  WorkspaceWatch(os::FileWatcher& watcher, const WorkspaceGuard& guard, OnFindings on_findings);
  WorkspaceWatch(const WorkspaceWatch&) = delete;
  WorkspaceWatch& operator=(const WorkspaceWatch&) = delete;

  // From now on what changes is looked at.
  Status begin();
  // Looks everywhere, without waiting for a change. Each place is found once, here or there.
  std::vector<Finding> look();

 private:
  // In a watched folder.
  struct Socket {
    std::string path;
    std::string name;  // the path's last part
    FileId id;
    bool operator==(const Socket&) const = default;
  };

  void watch(std::size_t number);  // of guard_.folders
  void watch_worktree(const std::string& name);
  void on_changes(const os::FileWatcher::Changes& changes);
  // Whether it matters for look().
  bool take(const os::FileWatcher::Event& event, std::vector<Socket>& made);
  std::vector<Socket> sockets_at(const std::vector<std::string>& paths) const;
  void report_bound(const std::vector<Socket>& made, std::vector<Finding>& findings);
  void watch_worktrees();
  void report_unknown(std::vector<Finding>& findings);
  void report(const Socket& socket, std::vector<Finding>& findings);
  void look_at_fixed(std::vector<Finding>& findings);
  void look_at_absent(std::vector<Finding>& findings);
  void look_at_tops(std::vector<Finding>& findings);
  void look_at_worktrees(std::vector<Finding>& findings);
  void add(std::vector<Finding>& findings, const std::string& path, Finding::Consequence consequence,
           std::string text);

  os::FileWatcher& watcher_;
  const WorkspaceGuard& guard_;
  const OnFindings on_findings_;
  os::FileWatcher::Group files_;
  std::size_t watched_ = 0;
  std::set<int> worktrees_;                     // ids of the folders "worktrees"
  std::set<int> worktree_;                      // and of those in them
  std::set<std::string, std::less<>> names_;    // those that matter
  std::set<std::string> found_;                 // paths
  std::map<int, std::size_t> watched_folders_;  // by id, of guard_.folders
  std::vector<Socket> sockets_before_;          // the guard's business
};

}  // namespace sallyport::sandbox
