#include "session/grant_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "os/act_as.h"
#include "session/consent.h"
#include "session/identity.h"

namespace sallyport::session {

namespace {

Result<Consent> consent_of(const std::optional<os::Ids>& client, const config::Loaded& loaded,
                           const std::string& trust_folder) {
  const os::ActAs as_client(client);
  return find_consent(loaded, trust_folder);
}

// A user's consent to what uses a credential is that user's to give; the credential is the operator's.
bool is_user_of(const config::CredentialSource& credential, const os::Ids& client) {
  const auto is_listed = [&](const std::string& user) {
    return !user.empty() && std::ranges::find(credential.users, user) != credential.users.end();
  };
  return is_listed(user_name(client.uid)) || is_listed(std::to_string(client.uid));
}

std::string not_a_user(const std::string& credential, const os::Ids& client, const std::string& config_path) {
  const std::string name = user_name(client.uid);
  return fmt::format(
      "the credential '{0}' is not given to you: this daemon's operator can write users = [{1}] below "
      "[credential.{0}] of {2}",
      credential, name.empty() ? std::to_string(client.uid) : fmt::format("\"{}\"", escaped(name)),
      escaped(config_path));
}

}  // namespace

std::expected<GrantPlan, std::string> plan_grant(const config::Sources& sources,
                                                 const std::optional<os::Ids>& client) {
  auto loaded = config::load(sources, client);
  if (!loaded) return std::unexpected(config::text_of(loaded.error()));
  // On the very bytes that the grant was made of.
  auto consent = consent_of(client, *loaded, sources.trust_folder);
  if (!consent) return std::unexpected(std::move(consent).error().detail);
  if (consent->missing()) return std::unexpected(stop_text(sources, *loaded->policy, *consent));
  GrantPlan plan{.grant = std::move(loaded->grant), .credentials = {}, .credential_files = {}};
  for (const auto& [name, source] : loaded->config.credentials) plan.credential_files.push_back(source.file);
  for (const policy::GitRule& rule : plan.grant.git) {
    if (rule.credential.empty()) continue;
    const config::CredentialSource& source = loaded->config.credentials.at(rule.credential);
    if (client && !is_user_of(source, *client)) {
      return std::unexpected(not_a_user(rule.credential, *client, sources.config_path));
    }
    plan.credentials.emplace(rule.credential, source);
  }
  return plan;
}

}  // namespace sallyport::session
