// What the operator lets every workspace's policy file do with a credential, without the user's consent.
#pragma once

#include <string>

#include "policy/grant.h"

namespace sallyport::policy {

// One [[approve]] of the operator's file.
struct Approval {
  RepoPattern repo;
  Access access;
  std::string credential;
};

// Whether `rule` lies wholly within: no repository, no access and no credential beyond the approved.
bool approves(const Approval& approval, const GitRule& rule);

}  // namespace sallyport::policy
