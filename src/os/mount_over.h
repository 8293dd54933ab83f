// Files of ours over files that are there already, in another process's mount namespace: what a container
// that was not made by us is given. sallyport-netns does it, so that no process of ours is ever half-way
// inside.
#pragma once

#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace sallyport::os {

struct MountOver {
  std::string source;  // on the host; a regular file
  std::string target;  // inside; left out when nothing is there
};

// Read-only, without set-id bits and devices. The targets that were there.
Result<std::vector<std::string>> mount_over(const std::string& helper, const Fd& mount_namespace,
                                            const std::vector<MountOver>& files);

// The helper's side: its arguments are "mount-over" and then sources and targets by turns.
inline constexpr char kMountOver[] = "mount-over";
inline constexpr int kMountNamespaceFd = 4;
Status serve_mount_over(int control, const std::vector<std::string>& arguments);

}  // namespace sallyport::os
