#include "session/regrant.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/text.h"
#include "os/safe_path.h"
#include "sandbox/mounts.h"
#include "session/grant_diff.h"
#include "wire/grant_codec.h"

namespace sallyport::session {
namespace {

// A policy file that was not there when the sandbox was made could have been written by it.
bool is_made_inside(const config::Sources& sources, const sandbox::WorkspaceGuard& guard) {
  const auto is_policy = [](const sandbox::AbsentPlace& place) {
    return place.answer == sandbox::AbsentPlace::Answer::Report;
  };
  return std::ranges::any_of(guard.absent, is_policy) && os::path_exists(sources.policy_path);
}

}  // namespace

Regrant::Planned plan_grant_again(const config::Sources& sources, const Plan& running,
                                  const std::optional<os::Ids>& client) {
  if (is_made_inside(sources, running.guard)) {
    return std::unexpected(fmt::format(
        "{} was made while the sandbox runs, which may have written it: read it, and then stop the "
        "session and start it",
        escaped(sources.policy_path)));
  }
  auto plan = plan_grant(sources, client);
  if (!plan) return plan;
  const sandbox::Dangers dangers = sandbox::dangerous_paths({.own_homes = {},
                                                             .other_homes = {},
                                                             .sallyport_folders = plan->credential_files,
                                                             .ssh_agent = "",
                                                             .dbus_address = "",
                                                             .docker_host = ""});
  for (const sandbox::Mount& mount : running.mounts) {
    auto safe = sandbox::judge_source(mount.path, dangers);
    if (!safe) return std::unexpected(std::move(safe).error().detail);
  }
  return plan;
}

void Regrant::ask(OnDone on_done) {
  if (over_) return on_done({.problem = "the session has ended", .changes = {}});
  waiting_.push_back(std::move(on_done));
  if (in_force_ != nullptr && under_way_.empty()) read_again();
}

void Regrant::begin(GrantPlan& in_force, Services& services, Journal& journal) {
  in_force_ = &in_force;
  services_ = &services;
  journal_ = &journal;
  if (!waiting_.empty()) read_again();
}

void Regrant::read_again() {
  under_way_ = std::exchange(waiting_, {});
  if (auto used = use_files(); !used && !over_) {
    journal_->alarm({Reason::PolicyUnreadable, used.error().detail});
    changes_.clear();
    finish(used.error().detail);
  }
}

// An error, and nothing has changed; or finish() is called, now or later.
Status Regrant::use_files() {
  Planned plan = callbacks_.plan();
  if (over_) return {};  // by what reading them has found
  if (!plan) return fail(Reason::PolicyUnreadable, std::move(plan).error());
  std::string encoded = wire::encode_grant(plan->grant);
  if (encoded == wire::encode_grant(in_force_->grant) && plan->credentials == in_force_->credentials) {
    record();
    finish("");
    return {};
  }
  changes_ = changes_in_words(*in_force_, *plan);
  auto used = services_->use({.encoded_grant = std::move(encoded),
                              .credentials = plan->credentials,
                              .change = change_between(*in_force_, *plan)});
  if (!used) return used;
  if (plan->grant.empty()) callbacks_.on_notice("the policy is empty now: nothing is reachable");
  *in_force_ = std::move(*plan);
  return {};
}

void Regrant::on_grant_in_force() {
  if (!over_) record();
}

void Regrant::on_grant_usable() {
  if (!over_) finish("");
}

void Regrant::record() {
  audit::Event event;
  event.kind = audit::Kind::Reload;
  event.detail = fmt::format("{} rules", in_force_->grant.rules());
  (void)journal_->append(event);  // where it fails nothing is let through
}

void Regrant::finish(std::string problem) {
  const Regranted outcome{std::move(problem), std::exchange(changes_, {})};
  for (const OnDone& on_done : std::exchange(under_way_, {})) on_done(outcome);
  if (!over_ && under_way_.empty() && !waiting_.empty()) read_again();
}

void Regrant::end() {
  if (std::exchange(over_, true)) return;
  auto asked = std::exchange(under_way_, {});
  std::ranges::move(std::exchange(waiting_, {}), std::back_inserter(asked));
  for (const OnDone& on_done : asked) on_done({.problem = "the session has ended", .changes = {}});
}

}  // namespace sallyport::session
