#include "session/grant_plan.h"

#include <utility>

#include "session/consent.h"

namespace sallyport::session {

std::expected<GrantPlan, std::string> plan_grant(const config::Sources& sources) {
  auto loaded = config::load(sources);
  if (!loaded) return std::unexpected(config::text_of(loaded.error()));
  // On the very bytes that the grant was made of.
  auto consent = find_consent(*loaded, sources.trust_folder);
  if (!consent) return std::unexpected(std::move(consent).error().detail);
  if (consent->missing()) return std::unexpected(stop_text(sources, *loaded->policy, *consent));
  GrantPlan plan{.grant = std::move(loaded->grant), .credentials = {}, .credential_files = {}};
  for (const auto& [name, source] : loaded->config.credentials) plan.credential_files.push_back(source.file);
  for (const policy::GitRule& rule : plan.grant.git) {
    if (rule.credential.empty()) continue;
    plan.credentials.emplace(rule.credential, loaded->config.credentials.at(rule.credential));
  }
  return plan;
}

}  // namespace sallyport::session
