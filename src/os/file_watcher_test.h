// What tests of file watchers and of their users share.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace sallyport::os {

inline std::size_t open_inotify_instances() {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;  // the iterator's own
    if (std::filesystem::read_symlink(entry.path(), gone) == "anon_inode:inotify") ++count;
  }
  return count;
}

// In a folder that is watched for IN_CREATE or IN_DELETE: more events than the kernel keeps.
inline void overflow_queue(const std::string& folder) {
  std::size_t kept = 0;
  std::ifstream("/proc/sys/fs/inotify/max_queued_events") >> kept;
  ASSERT_GT(kept, 0U);
  // Two in turns: the kernel makes one event of equal ones.
  const std::string names[] = {folder + "/flood-0", folder + "/flood-1"};
  for (std::size_t each = 0; each <= kept; ++each) {
    const std::string& name = names[each % 2];
    ASSERT_EQ(::mknod(name.c_str(), S_IFREG | 0600, 0), 0);
    ASSERT_EQ(::unlink(name.c_str()), 0);
  }
}

}  // namespace sallyport::os
