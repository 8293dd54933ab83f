#include "session/tree_removals.h"

#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

namespace sallyport::session {
namespace {

// Whose the sandbox's part is, when we are root.
std::optional<os::Ids> owner_of(const std::string& work) {
  struct stat status{};
  if (::geteuid() != 0 || ::lstat(work.c_str(), &status) != 0 || status.st_uid == 0) return std::nullopt;
  return os::Ids{.uid = status.st_uid, .gid = status.st_gid};
}

}  // namespace

TreeRemovals::~TreeRemovals() {
  if (timer_) loop_.cancel(*timer_);
  if (child_) loop_.unwatch(child_->pidfd.get());
  while (child_ || start_step()) {
    const auto ended = os::wait_child_within(*child_, kRemoveLimit);
    if (!ended || !*ended) {
      (void)os::kill_child(*child_, SIGKILL);
      (void)os::wait_child(*child_);
    }
    child_.reset();
  }
}

void TreeRemovals::remove(std::string folder, std::optional<Fd> lock) {
  if (removals_.size() >= kMaxRemovals) return;
  removals_.push_back({.folder = std::move(folder), .lock = std::move(lock), .steps = {}});
  if (!child_) go_on();
}

// By programs that no depth or length of names stops. What the sandbox has taken the right from to look into
// it is given back first, and its owner's processes may still change what is there: so the owner's rights
// have to do, or a link in the right moment would lead chmod elsewhere. What they leave is ours.
std::deque<TreeRemovals::Step> TreeRemovals::steps_of(const std::string& folder) {
  const std::string work = folder + "/work";
  const auto owner = owner_of(work);
  std::deque<Step> steps;
  steps.push_back({{"/bin/chmod", "-R", "u+rwX", "--", work}, owner});
  if (owner) steps.push_back({{"/bin/rm", "-rf", "--one-file-system", "--", work}, owner});
  steps.push_back({{"/bin/rm", "-rf", "--one-file-system", "--", folder}, std::nullopt});
  return steps;
}

bool TreeRemovals::start_step() {
  while (!removals_.empty()) {
    Removal& removal = removals_.front();
    if (!std::exchange(removal.begun, true)) removal.steps = steps_of(removal.folder);
    if (removal.steps.empty()) {
      removals_.pop_front();
      continue;
    }
    Step step = std::move(removal.steps.front());
    removal.steps.pop_front();
    auto child = os::spawn({.program = step.command.front(),
                            .argv = std::move(step.command),
                            .environment = {"PATH=/usr/bin:/bin", "LC_ALL=C"},
                            .become = step.become,
                            .working_directory = "/"});
    if (!child) continue;
    child_ = std::move(*child);
    return true;
  }
  return false;
}

void TreeRemovals::go_on() {
  if (!start_step()) return;
  loop_.watch(child_->pidfd.get(), POLLIN, [this](short) { on_end(); });
  timer_ = loop_.after(kRemoveLimit, [this] {
    timer_.reset();
    (void)os::kill_child(*child_, SIGKILL);
  });
}

void TreeRemovals::on_end() {
  loop_.unwatch(child_->pidfd.get());
  if (timer_) loop_.cancel(*timer_);
  timer_.reset();
  (void)os::wait_child(*child_);
  child_.reset();
  go_on();
}

}  // namespace sallyport::session
