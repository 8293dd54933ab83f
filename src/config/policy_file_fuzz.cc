// A policy file, which lies in a workspace that anybody may have written. Whatever was accepted must decide
// without a surprise: each rule without wildcards grants its own repository.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "config/config.h"
#include "policy/decide.h"
#include "policy/explain.h"

using namespace sallyport;

namespace {

void check_rule(const policy::Grant& grant, const policy::GitRule& rule) {
  if (rule.repo.wildcards() != 0) return;
  const auto repo = policy::parse_repo(rule.repo.str(), grant.kind_of(rule.repo.host()));
  if (!repo) std::abort();
  const policy::GitRoute route{*repo, policy::GitService::UploadPack, policy::GitEndpoint::Rpc, false};
  const policy::Decision decision = policy::decide(grant, policy::UseGit{route, policy::kHttpsPort});
  if (!decision.allowed() || &grant.git.at(decision.rule->index) != &rule) std::abort();
}

// Nothing that is denied wholly is let in, and a [[tcp]] opens its port if nothing denies it.
void check_http_rules(const policy::Grant& grant) {
  for (const policy::AllowRule& rule : grant.allow) {
    for (const policy::HostPattern& host : rule.hosts) {
      policy::decide(grant, policy::Connect{host.base(), rule.ports.front()});
      const policy::UseHttp get{policy::Scheme::Https, host.base(), rule.ports.front(), policy::Method::Get,
                                *policy::HttpPath::parse("/v1/x?y=z")};
      policy::decide(grant, get);
    }
  }
  for (const policy::DenyRule& rule : grant.deny) {
    const std::uint16_t port = rule.ports.empty() ? policy::kHttpsPort : rule.ports.front();
    for (const policy::HostPattern& host : rule.hosts) {
      const policy::Decision decision = policy::decide(grant, policy::Connect{host.base(), port});
      if (decision.allowed() && rule.is_total() && !host.is_wildcard()) std::abort();
    }
  }
  for (const policy::TcpRule& rule : grant.tcp) {
    const policy::Decision decision = policy::decide(grant, policy::Connect{rule.host, rule.port});
    const bool raw = decision.allowed() && decision.carriage == policy::Carriage::Raw;
    if (!raw && decision.reason != Reason::DeniedByRule) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  config::OperatorConfig config;
  config.credentials["github"] = {"/run/keys/github", {}};
  const auto policy = config::parse_policy(text, "sallyport.toml", config);
  if (!policy) {
    if (policy.error().empty()) std::abort();
    return 0;
  }
  const auto grant = config::make_grant(*policy, {}, config);
  if (!grant) return 0;
  for (const policy::GitRule& rule : grant->git) check_rule(*grant, rule);
  check_http_rules(*grant);
  if (policy::explain_url(*grant, text).text().empty()) std::abort();
  return 0;
}
