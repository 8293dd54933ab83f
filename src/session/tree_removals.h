// Removes the folders of private clones beside the loop, one after the other: what a sandbox has filled one
// with may take minutes, and the daemon has other sessions.
#pragma once

#include <chrono>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "os/event_loop.h"
#include "os/spawn.h"

namespace sallyport::session {

class TreeRemovals {
 public:
  // Each of the three programs of a removal; then it is killed, and the next start removes what is left.
  static constexpr std::chrono::minutes kRemoveLimit{2};
  // Asked for at once, each with a descriptor; a further folder is left to the next start.
  static constexpr std::size_t kMaxRemovals = 64;

  // The loop outlives this.
  explicit TreeRemovals(os::EventLoop& loop) : loop_(loop) {}
  TreeRemovals(const TreeRemovals&) = delete;
  TreeRemovals& operator=(const TreeRemovals&) = delete;
  // Waits for what was asked for.
  ~TreeRemovals();

  // `folder`, and in it "work", which is a sandbox's. `lock` tells others that it is seen to.
  void remove(std::string folder, std::optional<Fd> lock);

 private:
  struct Step {
    std::vector<std::string> command;
    std::optional<os::Ids> become;
  };
  struct Removal {
    std::string folder;
    std::optional<Fd> lock;
    std::deque<Step> steps;  // none before it has begun
    bool begun = false;
  };

  static std::deque<Step> steps_of(const std::string& folder);
  // The next step that can be started; false when there is none any more.
  bool start_step();
  void go_on();
  void on_end();

  os::EventLoop& loop_;
  std::deque<Removal> removals_;  // the first is under way
  std::optional<os::Child> child_;
  std::optional<os::EventLoop::TimerId> timer_;
};

}  // namespace sallyport::session
