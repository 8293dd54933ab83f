// `run --private-git`: makes the private clone before a session, brings back what was committed in it after,
// and removes it. The git commands are those of sandbox/private_clone.h, each sealed, with a time limit and a
// bound on what is read of it; nothing here blocks.
//
// A clone lies in STATE/clones/SESSION, a folder of mode 0700 that is locked (flock) while the session lives.
// One that nobody holds was left behind by a session that was killed, and is removed by the next start. A
// clone of which the commits could not be brought back is kept as STATE/clones/kept-SESSION, and the user is
// told.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "os/event_loop.h"
#include "os/spawn.h"
#include "sandbox/mounts.h"
#include "sandbox/private_clone.h"
#include "session/tree_removals.h"

namespace sallyport::session {

class PrivateGit {
 public:
  // Each of the three git commands; then it is killed.
  static constexpr std::chrono::minutes kCommandLimit{10};
  static constexpr std::uint64_t kMaxBundleBytes = std::uint64_t{2} << 30;
  static constexpr std::size_t kMaxListBytes = std::size_t{16} << 20;  // ids before, names after
  static constexpr std::size_t kMaxErrorBytes = 4096;                  // of what git said
  static constexpr std::size_t kMaxRefsTold = 20;

  struct Setup {
    std::string clones_folder;  // STATE/clones
    std::string session;        // its id
    os::Ids ids;                // whom the sandbox runs as, and git here
    std::optional<os::Ids> become;
    std::string ignored;  // path of the policy relative to the workspace, or ""
  };
  using Done = std::function<void(Status)>;
  // Lines for the user.
  using Told = std::function<void(std::vector<std::string> lines)>;

  // Loop and removals outlive this.
  PrivateGit(os::EventLoop& loop, TreeRemovals& removals, Setup setup);
  // Ends what runs and has the clone removed, unless it is kept: because its commits did not come back, or
  // had no time to.
  ~PrivateGit();
  PrivateGit(const PrivateGit&) = delete;
  PrivateGit& operator=(const PrivateGit&) = delete;

  // The first part of the session's id, as in refs/sallyport/ID/.
  std::string short_id() const;

  // What the user should know before the command starts.
  std::string notice() const;

  // `real`: the workspace. Afterwards clone() is to be mounted in its place.
  void make(const sandbox::Mount& real, Done done);
  Result<sandbox::Mount> clone(const std::string& path) const;
  // The sandbox runs: from now on the clone may hold commits.
  void hold() { holds_work_ = true; }
  // After everything of the sandbox has ended. Never fails: what went wrong is in the lines.
  void bring_back(Told told);

  // Has removed what killed sessions have left in `clones_folder`, if it is there.
  static void remove_leftovers(const std::string& clones_folder, TreeRemovals& removals);

 private:
  struct Command {
    os::Child child;
    Fd output;
    Fd errors;
    std::string output_text;
    std::string error_text;
    std::optional<Fd> file;  // instead of output_text
    std::uint64_t received = 0;
    std::uint64_t limit = 0;
    std::string failure;  // set when it was ended by us
    os::EventLoop::TimerId timer{};
    std::function<void(Result<std::string>)> done;
  };

  Status make_folder();
  // Starts it; `done` gets its output, or with `file` nothing. One at a time.
  void run(sandbox::SealedSpec spec, std::uint64_t limit, std::optional<Fd> file,
           std::function<void(Result<std::string>)> done);
  void on_output();
  void on_errors();
  void on_end();
  void end(std::string failure);
  void on_packed(const Result<std::string>& packed);
  void on_fetched(const Result<std::string>& names);
  void keep(const std::string& why);
  std::string set_aside();
  void tell(std::vector<std::string> lines);
  Result<sandbox::Mount> open(const std::string& path, sandbox::Access access) const;

  os::EventLoop& loop_;
  TreeRemovals& removals_;
  Setup setup_;
  std::string folder_;  // of the session; empty: nothing to remove
  std::optional<Fd> lock_;
  sandbox::Mount real_;
  std::string start_;  // what was there before
  bool holds_work_ = false;
  Told told_;
  std::unique_ptr<Command> command_;  // while one runs
};

}  // namespace sallyport::session
