#include "sandbox/runtime.h"

namespace sallyport::sandbox {

std::vector<ExpectedMount> expected_mounts(const std::vector<Mount>& mounts) {
  std::vector<ExpectedMount> expected;
  for (const Mount& mount : mounts) expected.push_back({mount.path, mount.device, mount.inode});
  return expected;
}

}  // namespace sallyport::sandbox
