// The two files and the command line, joined.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/config.h"
#include "config/http_rule_lint.h"
#include "config/rule_lint.h"
#include "config/table_reader.h"
#include "policy/similar.h"

namespace sallyport::config {
namespace {

void check_credential(const policy::GitRule& rule, const Place& place, const OperatorConfig& config,
                      Problems& problems) {
  if (rule.credential.empty() || config.credentials.contains(rule.credential)) return;
  std::vector<std::string_view> names;
  for (const auto& [name, source] : config.credentials) names.push_back(name);
  const auto similar = policy::most_similar(rule.credential, names);
  problems.push_back({place, "no credential is named '" + rule.credential + "'",
                      similar ? "did you mean '" + std::string(*similar) + "'?"
                              : "add [credential." + rule.credential + "] to the operator's file"});
}

// What the operator says of hosts that rules name exactly, and the kind of those that git's name. A list of
// [[tcp]] may be long, and needs nothing for each of its names.
void add_hosts(const OperatorConfig& config, policy::Grant& grant) {
  for (const auto& [host, entry] : config.hosts) {
    const bool named = grant.git.names(host) || grant.allow.names(host) || grant.tcp.names(host);
    if (named) grant.hosts.emplace(host, entry.upstream);
  }
  for (const policy::GitRule& rule : grant.git) {
    const policy::HostName& host = rule.repo.host();
    if (grant.hosts.contains(host)) continue;
    policy::UpstreamHost upstream = grant.upstream(host);  // of the names above it
    upstream.kind = policy::well_known_kind(host);
    grant.hosts.emplace(host, std::move(upstream));
  }
}

// What the operator says of upstreams.
policy::Grant begin_grant(const OperatorConfig& config) {
  policy::Grant grant;
  grant.timeouts = config.timeouts;
  grant.resolvers = config.resolvers;
  grant.hosts_below = config.hosts_below;
  return grant;
}

}  // namespace

std::expected<policy::Grant, Problems> make_grant(const PolicyFile& policy,
                                                  const std::vector<policy::GitRule>& options,
                                                  const OperatorConfig& config) {
  Problems problems;
  policy::Grant grant = begin_grant(config);
  grant.limits = policy::Limits::lower_of(config.limits, policy.limits);
  std::vector<Place> option_places;
  for (const policy::GitRule& rule : options) {
    option_places.push_back({rule.source.file});
    check_credential(rule, option_places.back(), config, problems);
    grant.git.push_back(rule);
  }
  for (std::size_t i = 0; i < policy.git.size(); ++i) {
    check_credential(policy.git[i], policy.credential_places.at(i), config, problems);
    grant.git.push_back(policy.git[i]);
  }
  for (const auto& written : policy.allow) grant.allow.push_back(written.rule);
  for (const auto& written : policy.deny) grant.deny.push_back(written.rule);
  for (const auto& written : policy.tcp) grant.tcp.push_back(written.rule);
  add_hosts(config, grant);
  // Each by itself: an option may repeat a rule of the file, to say more or less than it.
  lint_rules(options, option_places, problems);
  lint_rules(policy.git, policy.places, problems);
  lint_http_rules(policy, grant, problems);
  if (!problems.empty()) {
    sort_by_place(problems);
    return std::unexpected(std::move(problems));
  }
  return grant;
}

}  // namespace sallyport::config
