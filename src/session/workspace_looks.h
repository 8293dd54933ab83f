// The looks at a session's workspace: at the start for what is the user's own, from then on for what changes,
// and once the sandbox is dead for what it left behind. The first and the last ask git and walk whole
// repositories, which a sandbox can make slow: they are a copy's work, and other sessions need not wait.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "os/event_loop.h"
#include "os/file_watcher.h"
#include "os/forked_task.h"
#include "os/process.h"
#include "sandbox/made_repositories.h"
#include "sandbox/workspace_guard.h"
#include "sandbox/workspace_watch.h"

namespace sallyport::session {

class WorkspaceLooks {
 public:
  // Of the first look and of the last, beside the limits of what they look at.
  static constexpr std::chrono::seconds kLookLimit{20};

  // What is found at any time.
  using Report = std::function<void(const std::vector<sandbox::Finding>&)>;

  // What is borrowed outlives this. `become`: the sandbox's ids, when we are root.
  WorkspaceLooks(os::EventLoop& loop, os::FileWatcher& watcher, const sandbox::WorkspaceGuard& guard,
                 std::optional<os::Ids> become, Report report);
  // Waits for a last look that is under way: what was planted is not left there.
  ~WorkspaceLooks();
  WorkspaceLooks(const WorkspaceLooks&) = delete;
  WorkspaceLooks& operator=(const WorkspaceLooks&) = delete;

  // Before the sandbox is started, so that nothing changes unseen between the guard's look and this one.
  void begin(std::function<void(Status)> done);
  // The user's own that can run programs, by path: what the first look found.
  const sandbox::ArmedBefore& armed() const { return armed_; }
  // Everywhere that is watched, now; nowhere any more once the last look has begun.
  void look() {
    if (watch_) report_(watch_->look());
  }
  // When the sandbox is dead, or never was; once. `done` is called when everything is reported, perhaps at
  // once.
  void look_last(std::function<void()> done);

 private:
  bool nothing_to_look_at() const { return guard_.tops.empty(); }
  void ask_copy(const os::ForkedTask::Work& work, os::ForkedTask::Done done);
  Status on_first(os::ForkedTask::Texts said, const Status& whole);
  void on_last(const os::ForkedTask::Texts& said, const Status& whole);
  std::string tops() const;

  os::EventLoop& loop_;
  os::FileWatcher& watcher_;
  const sandbox::WorkspaceGuard& guard_;
  const std::optional<os::Ids> become_;
  const Report report_;
  std::optional<sandbox::WorkspaceWatch> watch_;
  std::set<std::string> links_;  // the user's own, in guarded repositories
  sandbox::ArmedBefore armed_;
  std::unique_ptr<os::ForkedTask> copy_;
  bool looked_ = false;   // the first look is over
  bool looking_ = false;  // the last one is under way
};

}  // namespace sallyport::session
