// A private clone: the sandbox works on a repository of its own in the workspace's place, and what it
// committed comes back as refs under refs/sallyport/ID/ of the real one, and as nothing else.
//
// Here is what git is asked to do, in three sealed commands (bubblewrap.h, start_sealed): make the clone,
// pack what is new in it into a bundle, and fetch from that bundle. The clone is hostile once a sandbox had
// it: git opens it in the second command alone, which sees nothing else. Who runs them in which order is
// session/private_git.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sandbox/bubblewrap.h"
#include "sandbox/git_config.h"

namespace sallyport::sandbox {

inline constexpr std::size_t kMaxBundleHeadBytes = std::size_t{1} << 20;
inline constexpr std::size_t kMaxBundleRefs = 2'000;

// Of the real repository's configuration what the clone needs and what is no secret: remotes, tracking
// branches, the author, how lines end. Userinfo is taken out of URLs.
std::string clone_configuration(const std::vector<GitConfigEntry>& entries);

// Makes the clone in `clone` (an empty folder) from the work tree `real`. Its output is one "^ID" a line: all
// that was there before the sandbox. `ignored`: a path relative to the work tree that git inside shall not
// offer to commit, or "".
SealedSpec make_clone(Mount real, Mount clone, std::string configuration, const std::string& ignored);

// Its output is a bundle of all that is not reachable from `start` (make_clone's output), or nothing when
// there is nothing. What was not committed is in it as refs/sallyport/uncommitted.
SealedSpec pack_clone(Mount clone, std::string start);

// What a bundle says that it brings. Strict: only what pack_clone makes can be read; BadRequest for the rest.
struct BundleHead {
  std::vector<std::string> refs;  // "refs/heads/...", "refs/sallyport/uncommitted", "HEAD"
};
// `bytes`: the bundle's beginning, kMaxBundleHeadBytes or all of it.
Result<BundleHead> parse_bundle_head(std::string_view bytes);

// Where a bundle's refs go: "+refs/heads/*:refs/sallyport/ID/heads/*", ...
std::vector<std::string> refspecs_for(const BundleHead& head, const std::string& id);

// Fetches from the bundle into the repository of the work tree `real`. Its output is the names of the refs
// that are there now, one a line.
SealedSpec fetch_bundle(Mount real, Mount bundle, const BundleHead& head, const std::string& id);

}  // namespace sallyport::sandbox
