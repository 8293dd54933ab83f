// Opening what must belong to one user alone: credential files, configuration, state folders. Checks are made
// on the opened descriptor, so that nothing can be put in its place in between.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace sallyport::os {

// Whether anything has that name, a dangling symbolic link too.
bool path_exists(const std::string& path);

// open(2), but through no magic link (/proc/self/fd/N), which leads to what this process has open and not to
// what has that name. errno says why there is none.
Fd open_by_name(const std::string& path, int flags);

// For reading: a regular file that is no symbolic link, owned by `owner` or root, without any right for group
// or others. The error names the remedy.
Result<Fd> open_private_file(const std::string& path, uid_t owner);
// The same for `name` in an open folder; `path` is for messages.
Result<Fd> open_private_file_at(int folder, const std::string& name, const std::string& path, uid_t owner);

// All bytes from the descriptor's position on; more than `max_bytes` is an error. Not for credentials: those
// are read into a Secret.
Result<std::string> read_whole(int fd, std::size_t max_bytes);

// Makes (with its missing parents) or checks a folder of mode 0700 owned by file_uid() (act_as.h), and opens
// it (O_PATH). The last part of the path may not be a symbolic link.
Result<Fd> make_private_folder(const std::string& path);
// The same check of a folder that must be there.
Result<Fd> open_private_folder(const std::string& path);

}  // namespace sallyport::os
