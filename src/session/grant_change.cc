#include "session/grant_change.h"

#include "wire/grant_codec.h"

namespace sallyport::session {
namespace {

// Of a grant, what a vault goes by.
policy::Grant vaults_part(const policy::Grant& grant) {
  policy::Grant part;
  part.git = grant.git;
  part.deny = grant.deny;
  for (const policy::GitRule& rule : grant.git) {
    part.hosts.emplace(rule.repo.host(), grant.upstream(rule.repo.host()));
  }
  part.timeouts = grant.timeouts;
  part.resolvers = grant.resolvers;
  return part;
}

}  // namespace

GrantChange change_between(const GrantPlan& before, const GrantPlan& after) {
  const policy::Grant& was = before.grant;
  const policy::Grant& is = after.grant;
  return {.needs_gate = is.limits != was.limits || is.timeouts != was.timeouts,
          .needs_vault = after.credentials != before.credentials ||
                         wire::encode_grant(vaults_part(is)) != wire::encode_grant(vaults_part(was))};
}

}  // namespace sallyport::session
