// What of the host's file system a sandbox may see besides its profile: the workspace and each --mount. Every
// source is resolved, judged against the list of dangerous paths and opened before anything is started; the
// descriptor is what gets mounted, and sallyport-init compares what it finds inside with what was judged.
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

// Of one sandbox, the workspace and what guards it included.
inline constexpr std::size_t kMaxMounts = 512;

enum class Access { ReadWrite, ReadOnly };

struct MountRequest {
  std::string path;  // as the user wrote it; relative to the working directory, links allowed
  Access access = Access::ReadWrite;
};

// "PATH" or "PATH:ro". A path that itself ends in ":ro" is written with "/" behind it.
Result<MountRequest> parse_mount(std::string_view text);

// A path that never goes into a sandbox: not it, nothing below it, and no folder that holds it.
struct DangerousPath {
  std::string path;  // absolute and normal
  std::string why;   // "holds ssh keys"
};

// Whom and what the list of dangerous paths is made for.
struct DangerInput {
  std::vector<std::string> own_homes;    // of the caller and of the sandbox's user
  std::vector<std::string> other_homes;  // see other_homes()
  // Sallyport's configuration, state and runtime folders, and what the operator adds.
  std::vector<std::string> sallyport_folders;
  // SSH_AUTH_SOCK, DBUS_SESSION_BUS_ADDRESS and DOCKER_HOST of the caller, as they are; "" when not set.
  std::string ssh_agent;
  std::string dbus_address;
  std::string docker_host;
};

struct Dangers {
  std::vector<DangerousPath> paths;    // refused when the source is one, lies in one or contains one
  std::vector<std::string> own_homes;  // refused when the source is one or contains one; below is fine
};

// Existing or not. Those that are links count at both ends.
Dangers dangerous_paths(const DangerInput& input);

// The homes of people (uid 0 and 1000 to 59999) in the text of /etc/passwd, but those in `own`.
std::vector<std::string> other_homes(std::string_view passwd, const std::vector<std::string>& own);

// Refuses `/`, and what the lists say. The error names the path, why, and what to do.
Status judge_source(const std::string& resolved, const Dangers& dangers);

struct Mount {
  Fd source;         // O_PATH
  std::string path;  // resolved: where it is mounted inside
  // The user's own spelling, absolute and normal, when that is another path (a link): it exists inside too.
  std::string alias;
  Access access = Access::ReadWrite;
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  uid_t owner = 0;
};

// As realpath(3), but a link that lies in one of the `untrusted` folders (resolved) is refused: a sandbox
// that could write there may have put it there.
Result<std::string> resolve(const std::string& given, const std::vector<std::string>& untrusted);

// Resolves, judges, opens. A folder that we may enter or a regular file that we may read; anything else (a
// socket, a device) is refused.
Result<Mount> open_mount(const MountRequest& request, const Dangers& dangers,
                         const std::vector<std::string>& untrusted = {});

}  // namespace sallyport::sandbox
