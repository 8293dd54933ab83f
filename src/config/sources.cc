#include "config/sources.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ranges>

#include "config/approvals.h"
#include "os/safe_path.h"

namespace sallyport::config {
namespace {

bool wanted(const std::string& path, Presence presence) {
  return presence == Presence::Named || os::path_exists(path);
}

}  // namespace

std::expected<Loaded, Problems> load(const Sources& sources) {
  Loaded result;
  if (wanted(sources.config_path, sources.config)) {
    auto config = load_operator_config(sources.config_path);
    if (!config) return std::unexpected(std::move(config).error());
    result.config = std::move(*config);
  }
  PolicyFile policy;
  if (wanted(sources.policy_path, sources.policy)) {
    auto loaded = load_policy(sources.policy_path, result.config);
    if (!loaded) return std::unexpected(std::move(loaded).error());
    policy = std::move(*loaded);
    result.policy =
        PolicySource{std::move(policy.path), std::move(policy.text), unapproved_rules(policy, result.config)};
  }
  std::vector<policy::GitRule> options;
  for (const std::string& option : sources.git_options) {
    auto rule = parse_git_option(option, result.config);
    if (!rule) return std::unexpected(std::move(rule).error());
    options.push_back(std::move(*rule));
  }
  auto grant = make_grant(policy, options, result.config);
  if (!grant) return std::unexpected(std::move(grant).error());
  result.grant = std::move(*grant);
  return result;
}

std::string text_of(const Problems& problems) {
  return fmt::format("{}", fmt::join(problems | std::views::transform(&Problem::str), "\n"));
}

}  // namespace sallyport::config
