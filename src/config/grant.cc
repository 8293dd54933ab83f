// The two files and the command line, joined.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/config.h"
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

void add_rule(const policy::GitRule& rule, const OperatorConfig& config, policy::Grant& grant) {
  const policy::HostName& host = rule.repo.host();
  const auto entry = config.hosts.find(host);
  policy::UpstreamHost upstream;
  upstream.kind = policy::well_known_kind(host);
  if (entry != config.hosts.end()) upstream = entry->second.upstream;
  grant.hosts.try_emplace(host, std::move(upstream));
  grant.git.push_back(rule);
}

}  // namespace

std::expected<policy::Grant, Problems> make_grant(const PolicyFile& policy,
                                                  const std::vector<policy::GitRule>& options,
                                                  const OperatorConfig& config) {
  Problems problems;
  policy::Grant grant;
  grant.timeouts = config.timeouts;
  std::vector<Place> option_places;
  for (const policy::GitRule& rule : options) {
    option_places.push_back({rule.source.file});
    check_credential(rule, option_places.back(), config, problems);
    add_rule(rule, config, grant);
  }
  for (std::size_t i = 0; i < policy.git.size(); ++i) {
    check_credential(policy.git[i], policy.credential_places.at(i), config, problems);
    add_rule(policy.git[i], config, grant);
  }
  // Each by itself: an option may repeat a rule of the file, to say more or less than it.
  lint_rules(options, option_places, problems);
  lint_rules(policy.git, policy.places, problems);
  if (!problems.empty()) {
    sort_by_place(problems);
    return std::unexpected(std::move(problems));
  }
  return grant;
}

}  // namespace sallyport::config
