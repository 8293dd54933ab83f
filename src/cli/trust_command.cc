#include "cli/trust_command.h"

#include <fmt/core.h>

#include <boost/json.hpp>
#include <filesystem>

#include "base/text.h"
#include "cli/paths.h"
#include "cli/question.h"
#include "cli/report.h"
#include "config/trust_store.h"

namespace sallyport::cli {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxShownPathBytes = 16 * 1024;

std::string shown(const std::string& path) {
  return escaped(path, kMaxShownPathBytes);
}

// Paths are bytes; JSON is UTF-8.
json::value entry_json(const std::string& path, const std::string& sha256) {
  return {{"path", shown(path)}, {"sha256", sha256}};
}

int list(const TrustOptions& options, const config::TrustStore& store) {
  const auto entries = store.all();
  if (!entries) return failed(entries.error());
  json::array array;
  for (const config::Trusted& entry : *entries) {
    if (options.format == Format::Json) {
      array.push_back(entry_json(entry.path, entry.sha256));
    } else {
      fmt::print("{}  {}\n", entry.sha256, shown(entry.path));
    }
  }
  if (options.format == Format::Json) print_json(array);
  return kExitOk;
}

int revoke(const TrustOptions& options, const config::TrustStore& store, const config::Sources& sources) {
  // The file itself may be gone.
  std::error_code error;
  const std::string path = std::filesystem::weakly_canonical(sources.policy_path, error).string();
  const auto revoked = store.revoke(error ? sources.policy_path : path);
  if (!revoked) return failed(revoked.error());
  if (options.format == Format::Json) {
    print_json({{"path", shown(path)}, {"revoked", *revoked}});
  } else {
    fmt::print(stderr, "{} {}\n", shown(path), *revoked ? "is trusted no more" : "was not trusted");
  }
  return *revoked ? kExitOk : kExitNo;
}

int done(const TrustOptions& options, const config::Loaded& loaded, const session::Consent& consent) {
  const std::string& path = loaded.policy->path;
  if (options.format == Format::Json) {
    print_json({{"path", shown(path)},
                {"sha256", config::sha256_hex(loaded.policy->text)},
                {"state", session::name(consent.state)}});
  } else if (consent.state == session::ConsentState::NotNeeded) {
    fmt::print(stderr,
               "{} needs no consent: no rule uses a credential that the operator's file does not approve\n",
               shown(path));
  } else {
    fmt::print(stderr, "{} is trusted as it is now\n", shown(path));
  }
  return kExitOk;
}

// Shows what would be trusted, and asks unless that was answered already.
bool agreed(const config::PolicySource& policy, const session::Consent& consent, Answer answer) {
  fmt::print(stderr, "{}", session::describe(policy, consent, session::kFull));
  return answer == Answer::Yes || ask("Trust this file as it is now?");
}

int trust(const TrustOptions& options, const config::TrustStore& store, const config::Sources& sources) {
  const auto loaded = config::load(sources);
  if (!loaded) {
    fmt::print(stderr, "{}\n", config::text_of(loaded.error()));
    return kExitNo;
  }
  auto consent = session::find_consent(*loaded, sources.trust_folder);
  if (!consent) return failed(consent.error());
  if (!consent->missing()) return done(options, *loaded, *consent);
  if (options.answer == Answer::Ask && !can_ask()) {
    fmt::print(
        stderr,
        "{}sallyport: there is no terminal to ask at; whoever has read the file can say so: {} --yes\n",
        session::describe(*loaded->policy, *consent, session::kFull),
        session::trust_command(sources, *loaded->policy));
    return kExitNo;
  }
  if (!agreed(*loaded->policy, *consent, options.answer)) {
    fmt::print(stderr, "sallyport: nothing was trusted\n");
    return kExitNo;
  }
  // What was shown, not what may lie there by now.
  if (auto status = store.trust(loaded->policy->path, loaded->policy->text); !status) {
    return failed(status.error());
  }
  consent->state = session::ConsentState::Given;
  return done(options, *loaded, *consent);
}

}  // namespace

int policy_trust(const TrustOptions& options) {
  const auto paths = find_paths();
  if (!paths) return failed(paths.error());
  config::Sources sources = sources_of(options.files, *paths);
  sources.policy = config::Presence::Named;  // there is nothing to trust without one
  const config::TrustStore store(sources.trust_folder);
  switch (options.action) {
    case TrustAction::Trust:
      return trust(options, store, sources);
    case TrustAction::List:
      return list(options, store);
    case TrustAction::Revoke:
      return revoke(options, store, sources);
  }
  return kExitFailed;
}

bool consent_before_run(const config::Sources& sources) {
  if (!can_ask()) return true;
  const auto loaded = config::load(sources);
  if (!loaded) return true;
  const auto consent = session::find_consent(*loaded, sources.trust_folder);
  if (!consent || !consent->missing()) return true;
  if (!agreed(*loaded->policy, *consent, Answer::Ask)) {
    fmt::print(stderr, "sallyport: nothing was trusted, and nothing was started\n");
    return false;
  }
  const auto status =
      config::TrustStore(sources.trust_folder).trust(loaded->policy->path, loaded->policy->text);
  if (!status) failed(status.error());
  return status.has_value();
}

json::value consent_json(const config::Sources& sources, const config::Loaded& loaded,
                         const session::Consent& consent) {
  json::value command = nullptr;
  if (consent.missing()) command = session::trust_command(sources, *loaded.policy);
  return {{"state", session::name(consent.state)}, {"command", std::move(command)}};
}

void print_missing_consent(const config::Sources& sources, const config::Loaded& loaded,
                           const session::Consent& consent) {
  if (!consent.missing()) return;
  const bool changed = consent.state == session::ConsentState::Changed;
  fmt::print(stderr, "sallyport: a run would stop: {} uses credentials and {}; run: {}\n",
             shown(loaded.policy->path), changed ? "has changed since you trusted it" : "was never trusted",
             session::trust_command(sources, *loaded.policy));
}

}  // namespace sallyport::cli
