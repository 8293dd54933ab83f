// The steps of which a WorkspaceGuard is made. `name` is always below the mount, "" being the mount itself.
#pragma once

#include <map>
#include <set>
#include <string>

#include "sandbox/workspace_guard.h"

namespace sallyport::sandbox {

class GuardBuilder {
 public:
  explicit GuardBuilder(const GuardInput& input) : input_(input) {}

  const GuardInput& input() const { return input_; }

  // Opens a folder for being named by places; an error when it is none, or is reached through a link.
  Result<std::size_t> folder(const Mount& mount, const std::string& name);
  int fd(std::size_t folder) const { return guard_.folders[folder].fd.get(); }
  const std::string& path(std::size_t folder) const { return guard_.folders[folder].path; }

  // Mounts each folder on the way to `name`, and it too, on itself: then none can be renamed or replaced.
  Status pin(const Mount& mount, const std::string& name);
  // The same for what holds `name` alone.
  Status pin_parents(const Mount& mount, const std::string& name);
  // Makes what is there read-only; false when nothing is. Its parents are pinned.
  Result<bool> make_read_only(const Mount& mount, const std::string& name,
                              FixedPlace::Gone gone = FixedPlace::Gone::FellOff);
  // The same; where nothing is a placeholder is made read-only, or, when none can be made, watched for.
  Status make_read_only_or_hold(const Mount& mount, const std::string& name, Placeholder::Kind kind,
                                FixedPlace::Gone gone = FixedPlace::Gone::FellOff);

  // For a mount that somebody else adds.
  Status add_fixed(const Mount& mount, const std::string& name, FixedPlace::Gone gone);
  void add_absent(std::size_t folder, std::string name, AbsentPlace::Answer answer);

  WorkspaceGuard& guard() { return guard_; }

 private:
  Status add_mount(Fd source, std::string path, Access access);

  const GuardInput& input_;
  WorkspaceGuard guard_;
  std::map<std::string, std::size_t> folders_;  // by path
  std::set<std::string> mounted_;               // paths of guard_.mounts
};

}  // namespace sallyport::sandbox
