#include "policy/decide.h"

#include <algorithm>

namespace sallyport::policy {
namespace {

Decision allow() {
  return {Verdict::Allow, Reason::None, std::nullopt, std::nullopt};
}

Decision deny(Reason reason) {
  return {Verdict::Deny, reason, std::nullopt, std::nullopt};
}

// The first two questions, the same for every operation. None: the host is named.
Reason judge_host(const Grant& grant, const HostName& host) {
  if (grant.empty()) return Reason::PolicyEmpty;
  const auto names_it = [&](const GitRule& rule) { return rule.repo.host() == host; };
  return std::ranges::any_of(grant.git, names_it) ? Reason::None : Reason::HostNotAllowed;
}

Reason judge_host_and_port(const Grant& grant, const HostName& host, std::uint16_t port) {
  if (const Reason reason = judge_host(grant, host); reason != Reason::None) return reason;
  return port == kHttpsPort ? Reason::None : Reason::PortNotAllowed;
}

// Fewest wildcards, then the earliest.
std::optional<std::size_t> deciding_rule(const Grant& grant, const RepoId& repo) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < grant.git.size(); ++i) {
    if (!grant.git[i].repo.matches(repo)) continue;
    if (!best || grant.git[i].repo.wildcards() < grant.git[*best].repo.wildcards()) best = i;
  }
  return best;
}

// Cheap on purpose: the sandbox chooses how often and against how long a name this runs.
std::optional<std::size_t> closest_rule(const Grant& grant, const RepoId& repo) {
  std::optional<std::size_t> best;
  std::size_t best_equal = 0;
  for (std::size_t i = 0; i < grant.git.size(); ++i) {
    if (grant.git[i].repo.host() != repo.host) continue;
    const std::size_t equal = grant.git[i].repo.equal_leading_segments(repo);
    if (best && equal <= best_equal) continue;
    best = i;
    best_equal = equal;
  }
  return best;
}

bool covers_service(Access access, GitService service) {
  switch (access) {
    case Access::Push:
      return true;
    case Access::Fetch:
      return service == GitService::UploadPack;
  }
  return false;
}

struct Judge {
  const Grant& grant;

  Decision operator()(const ResolveName& operation) const {
    const Reason reason = judge_host(grant, operation.host);
    return reason == Reason::None ? allow() : deny(reason);
  }

  Decision operator()(const OpenTls& operation) const {
    const Reason reason = judge_host_and_port(grant, operation.host, operation.port);
    return reason == Reason::None ? allow() : deny(reason);
  }

  Decision operator()(const UseGit& operation) const {
    const RepoId& repo = operation.route.repo;
    const Reason reason = judge_host_and_port(grant, repo.host, operation.port);
    if (reason != Reason::None) return deny(reason);
    const auto rule = deciding_rule(grant, repo);
    if (!rule) {
      Decision decision = deny(Reason::RepoNotGranted);
      decision.closest = closest_rule(grant, repo);
      return decision;
    }
    const bool covered = covers_service(grant.git[*rule].access, operation.route.service);
    Decision decision = covered ? allow() : deny(Reason::PushNotGranted);
    decision.rule = rule;
    return decision;
  }
};

std::string rule_text(const std::string& repo, Access access, std::string_view credential) {
  std::string text = "[[git]]\nrepo = \"" + repo + "\"\naccess = \"" + std::string(name(access)) + "\"";
  if (!credential.empty()) text += "\ncredential = \"" + std::string(credential) + "\"";
  return text;
}

std::string host_rule(const HostName& host, std::uint16_t port, std::string_view credential) {
  if (port != kHttpsPort || !special_name(host).empty()) return "";
  return rule_text(host.str() + "/OWNER/NAME", Access::Fetch, credential);
}

struct RuleFor {
  std::string_view credential;

  std::string operator()(const ResolveName& operation) const {
    return host_rule(operation.host, kHttpsPort, credential);
  }
  std::string operator()(const OpenTls& operation) const {
    return host_rule(operation.host, operation.port, credential);
  }
  std::string operator()(const UseGit& operation) const {
    const RepoId& repo = operation.route.repo;
    if (operation.port != kHttpsPort || !special_name(repo.host).empty()) return "";
    const Access access = operation.route.service == GitService::ReceivePack ? Access::Push : Access::Fetch;
    return rule_text(repo.str(), access, credential);
  }
};

}  // namespace

Decision decide(const Grant& grant, const Operation& operation) {
  return std::visit(Judge{grant}, operation);
}

std::string line_to_add(const Operation& operation, std::string_view credential) {
  return std::visit(RuleFor{credential}, operation);
}

}  // namespace sallyport::policy
