#include "vault/judge.h"

#include <utility>

#include "policy/decide.h"

namespace sallyport::vault {
namespace {

std::unexpected<Error> refused(std::string detail) {
  return fail(Reason::VaultRefused, std::move(detail));
}

Result<policy::GitRoute> read_route(const RequestHead& head, const policy::Grant& grant) {
  auto host = policy::HostName::parse(head.host);
  if (!host || host->str() != head.host) return refused("the host is not a canonical name");
  auto route = policy::parse_git_route(*host, grant.kind_of(*host), head.method, head.target);
  if (!route) return refused("not a git request: " + std::string(code(route.error().reason)));
  if (route->method() != head.method || route->target() != head.target) {
    return refused("the target is not canonical");
  }
  return route;
}

}  // namespace

Result<Judged> judge(const RequestHead& head, std::string_view session, const policy::Grant& grant) {
  if (head.session != session) return refused("another session");
  auto route = read_route(head, grant);
  if (!route) return fail(std::move(route));
  if (route->endpoint == policy::GitEndpoint::Advertisement && head.body != upstream::BodyKind::None) {
    return refused("an advertisement with a body");
  }

  const policy::Decision decision = policy::decide(grant, policy::UseGit{*route, head.port});
  if (!decision.allowed() || !decision.rule) {
    return refused("the grant does not allow it: " + std::string(code(decision.reason)));
  }
  if (*decision.rule != policy::RuleRef{policy::RuleRef::Kind::Git, head.rule}) {
    return refused("another rule decides");
  }
  const std::string& credential = grant.git.at(head.rule).credential;
  if (credential.empty()) return refused("the rule names no credential");
  return Judged{.request = {.request_id = head.request_id,
                            .rule = head.rule,
                            .host = route->repo.host,
                            .port = head.port,
                            .method = std::string(route->method()),
                            .target = route->target(),
                            .headers = head.headers,
                            .body = head.body,
                            .body_bytes = head.body_bytes},
                .credential = credential};
}

}  // namespace sallyport::vault
