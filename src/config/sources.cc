#include "config/sources.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ranges>

#include "config/approvals.h"
#include "os/act_as.h"
#include "os/safe_path.h"

namespace sallyport::config {
namespace {

bool wanted(const std::string& path, Presence presence) {
  return presence == Presence::Named || os::path_exists(path);
}

std::expected<PolicyFile, Problems> read_policy(const Sources& sources, const OperatorConfig& config,
                                                const std::optional<os::Ids>& client) {
  const os::ActAs as_client(client);
  if (!wanted(sources.policy_path, sources.policy)) return PolicyFile{};
  return load_policy(sources.policy_path, config);
}

}  // namespace

std::expected<Loaded, Problems> load(const Sources& sources, const std::optional<os::Ids>& client) {
  Loaded result;
  if (wanted(sources.config_path, sources.config)) {
    auto config = load_operator_config(sources.config_path);
    if (!config) return std::unexpected(std::move(config).error());
    result.config = std::move(*config);
  }
  auto policy = read_policy(sources, result.config, client);
  if (!policy) return std::unexpected(std::move(policy).error());
  if (!policy->path.empty()) {
    result.policy = PolicySource{std::move(policy->path), std::move(policy->text),
                                 unapproved_rules(*policy, result.config)};
  }
  std::vector<policy::GitRule> options;
  for (const std::string& option : sources.git_options) {
    auto rule = parse_git_option(option, result.config);
    if (!rule) return std::unexpected(std::move(rule).error());
    options.push_back(std::move(*rule));
  }
  auto grant = make_grant(*policy, options, result.config);
  if (!grant) return std::unexpected(std::move(grant).error());
  result.grant = std::move(*grant);
  return result;
}

std::string text_of(const Problems& problems) {
  return fmt::format("{}", fmt::join(problems | std::views::transform(&Problem::str), "\n"));
}

}  // namespace sallyport::config
