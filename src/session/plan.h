// Everything that a session needs to know before anything is started: both files read, the user's consent to
// the policy found, the workspace judged, the ids chosen. A plan has side effects on nothing, but for the
// guard's placeholders, which go with it.
#pragma once

#include <expected>
#include <map>
#include <string>
#include <vector>

#include "config/config.h"
#include "policy/grant.h"
#include "sandbox/mounts.h"
#include "sandbox/profile.h"
#include "sandbox/workspace_guard.h"
#include "session/grant_plan.h"
#include "session/identity.h"
#include "session/request.h"

namespace sallyport::session {

struct Plan : GrantPlan {
  Identities identities;
  std::vector<sandbox::Mount> mounts;  // the workspace first
  sandbox::WorkspaceGuard guard;       // its own mounts are among them
  bool private_git = false;            // a clone is to be mounted in place of the first
  std::string working_directory;       // as the user spelled it; exists inside
  sandbox::ProfileInput profile;       // but for the session's own CA
  std::vector<std::string> environment;
  std::vector<std::string> notices;  // for the user's eyes
};

// The error is text for the user: problems of the files with their places, or what is wrong with the
// workspace.
std::expected<Plan, std::string> make_plan(const Request& request);

}  // namespace sallyport::session
