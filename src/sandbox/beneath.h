// Looking at places below a folder that hostile code can write to: through no link, and never out of it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace sallyport::sandbox {

// Which file it is, whatever its name.
struct FileId {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  bool operator==(const FileId&) const = default;
};

// `name` may have several parts; "" and "." are the folder itself. nullopt: not there. `path` is the folder's
// own, for the error: a part that is a symbolic link is one (RESOLVE_BENEATH, RESOLVE_NO_SYMLINKS).
Result<std::optional<Fd>> open_beneath(int folder, const std::string& path, const std::string& name,
                                       int flags);

// What has that one-part name, a link itself too; nullopt when nothing has.
std::optional<FileId> id_at(int folder, const std::string& name);
std::optional<FileId> id_of(int fd);

bool is_folder(int fd);
bool is_regular(int fd);

// The whole of a regular file; nullopt when it is not there, is no regular file, or holds more.
std::optional<std::string> read_beneath(int folder, const std::string& name, std::size_t max_bytes);

// The names in a folder, sorted; nullopt when there are more than `max`, or when it cannot be read: a folder
// that may only be entered still has what git looks up by name.
std::optional<std::vector<std::string>> names_in(int folder, std::size_t max);

// Whether git would take it for a repository: HEAD, objects and refs are there (setup.c, is_git_directory()).
bool looks_like_git_folder(int folder);

// "a/b" of "a" and "b"; either may be empty.
std::string joined(const std::string& folder, const std::string& name);
// Whether `path` is `folder` or lies in it; both absolute and normal.
bool is_or_lies_in(std::string_view path, std::string_view folder);

}  // namespace sallyport::sandbox
