// What the two files and the options allow, and where the credentials are that it takes.
#pragma once

#include <expected>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/sources.h"
#include "os/process.h"
#include "policy/grant.h"

namespace sallyport::session {

struct GrantPlan {
  policy::Grant grant;
  std::map<std::string, config::CredentialSource> credentials;  // those that the grant names
  std::vector<std::string>
      credential_files;  // of all that the operator's file defines: kept out of every mount
};

// The error is text for the user: problems of the files with their places, or that their consent is missing.
// `client`: by whose rights policy and consent are read, and who must be among a credential's users.
std::expected<GrantPlan, std::string> plan_grant(const config::Sources& sources,
                                                 const std::optional<os::Ids>& client = {});

}  // namespace sallyport::session
