#include "policy/decide.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/text.h"

namespace sallyport::policy {
namespace {

Decision allow(std::optional<RuleRef> rule = std::nullopt, Carriage carriage = Carriage::Inspect) {
  return {Verdict::Allow, Reason::None, rule, std::nullopt, carriage};
}

Decision deny(Reason reason, std::optional<RuleRef> rule = std::nullopt) {
  return {Verdict::Deny, reason, rule, std::nullopt, Carriage::Inspect};
}

RuleRef git_rule(std::size_t index) {
  return {RuleRef::Kind::Git, index};
}

// The first two questions, the same for every operation. None: the host is named.
Reason judge_host(const Grant& grant, const HostName& host) {
  if (grant.empty()) return Reason::PolicyEmpty;
  const bool named = grant.git.names(host) || grant.allow.names(host) || grant.tcp.names(host);
  return named ? Reason::None : Reason::HostNotAllowed;
}

bool has_port(const std::vector<std::uint16_t>& ports, std::uint16_t port) {
  return std::ranges::find(ports, port) != ports.end();
}

bool applies_at(const DenyRule& rule, std::uint16_t port) {
  return rule.ports.empty() || has_port(rule.ports, port);
}

// The first [[deny]] of host and port that `forbids` says yes to.
template <typename Forbids>
std::optional<RuleRef> denying_rule(const Grant& grant, const HostName& host, std::uint16_t port,
                                    Forbids forbids) {
  for (const std::size_t i : grant.deny.naming(host)) {
    if (applies_at(grant.deny[i], port) && forbids(grant.deny[i])) return RuleRef{RuleRef::Kind::Deny, i};
  }
  return std::nullopt;
}

std::optional<RuleRef> total_deny(const Grant& grant, const HostName& host, std::uint16_t port) {
  return denying_rule(grant, host, port, [](const DenyRule& rule) { return rule.is_total(); });
}

// Fewest wildcards, then the earliest.
std::optional<std::size_t> deciding_rule(const Grant& grant, const RepoId& repo) {
  std::optional<std::size_t> best;
  for (const std::size_t i : grant.git.naming(repo.host)) {
    if (!grant.git[i].repo.matches(repo)) continue;
    if (!best || grant.git[i].repo.wildcards() < grant.git[*best].repo.wildcards()) best = i;
  }
  return best;
}

// Cheap on purpose: the sandbox chooses how often and against how long a name this runs.
std::optional<std::size_t> closest_rule(const Grant& grant, const RepoId& repo) {
  std::optional<std::size_t> best;
  std::size_t best_equal = 0;
  for (const std::size_t i : grant.git.naming(repo.host)) {
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

// ---- connections ----

std::optional<RuleRef> tcp_rule(const Grant& grant, const HostName& host, std::uint16_t port) {
  for (const std::size_t i : grant.tcp.naming(host)) {
    if (grant.tcp[i].port == port) return RuleRef{RuleRef::Kind::Tcp, i};
  }
  return std::nullopt;
}

// Of those that name host and port, the one with the most specific host.
std::optional<RuleRef> allow_rule(const Grant& grant, const HostName& host, std::uint16_t port) {
  for (const std::size_t i : grant.allow.naming(host)) {
    if (has_port(grant.allow[i].ports, port)) return RuleRef{RuleRef::Kind::Allow, i};
  }
  return std::nullopt;
}

// Why HTTP in the clear is refused at a named host: most often it would be allowed under TLS.
Reason reason_in_clear(const Grant& grant, const HostName& host) {
  const bool under_tls = grant.git.names(host) || allow_rule(grant, host, kHttpsPort);
  return under_tls ? Reason::PlainHttp : Reason::PortNotAllowed;
}

Decision judge_connection(const Grant& grant, const HostName& host, std::uint16_t port) {
  if (const Reason reason = judge_host(grant, host); reason != Reason::None) return deny(reason);
  if (const auto denied = total_deny(grant, host, port)) return deny(Reason::DeniedByRule, denied);
  if (const auto tcp = tcp_rule(grant, host, port)) return allow(tcp, Carriage::Raw);
  if (port == kHttpsPort && grant.git.names(host)) return allow();
  const auto rule = allow_rule(grant, host, port);
  if (!rule) return deny(port == kHttpPort ? reason_in_clear(grant, host) : Reason::PortNotAllowed);
  const AllowRule& deciding = grant.allow[rule->index];
  if (deciding.scheme_at(port) == Scheme::Http) return allow(std::nullopt, Carriage::PlainHttp);
  if (deciding.tls == TlsMode::Inspect) return allow();
  const auto partly = denying_rule(grant, host, port, [](const DenyRule& /*rule*/) { return true; });
  if (partly) return deny(Reason::DeniedByRule, partly);
  return allow(rule, Carriage::Splice);
}

// A name is good for something when a connection to one of its ports is.
Decision judge_name(const Grant& grant, const HostName& host) {
  if (const Reason reason = judge_host(grant, host); reason != Reason::None) return deny(reason);
  std::vector<std::uint16_t> ports;
  if (grant.git.names(host)) ports.push_back(kHttpsPort);
  for (const std::size_t i : grant.allow.naming(host)) {
    ports.insert(ports.end(), grant.allow[i].ports.begin(), grant.allow[i].ports.end());
  }
  for (const std::size_t i : grant.tcp.naming(host)) ports.push_back(grant.tcp[i].port);
  Decision first_no = deny(Reason::PortNotAllowed);
  for (const std::uint16_t port : ports) {
    Decision decision = judge_connection(grant, host, port);
    if (decision.allowed()) return allow();
    if (first_no.reason == Reason::PortNotAllowed) first_no = decision;
  }
  return first_no;
}

// ---- requests ----

bool has_path(const std::vector<PathPattern>& patterns, const HttpPath& path, Case rule) {
  return patterns.empty() || std::ranges::any_of(patterns, [&](const PathPattern& pattern) {
           return pattern.matches(path, rule);
         });
}

// How much of a request a rule allows. In the order of asking: the largest one came closest.
enum class Fit : std::uint8_t { None, Port, Path, All };

Fit fit(const AllowRule& rule, const UseHttp& asked) {
  if (!has_port(rule.ports, asked.port) || rule.scheme_at(asked.port) != asked.scheme) return Fit::None;
  if (asked.path.has_encoded_slash() && !rule.encoded_slash) return Fit::Port;
  if (!has_path(rule.paths, asked.path, Case::Exact)) return Fit::Port;
  if (!rule.methods.contains(asked.method) || (asked.websocket && !rule.websocket)) return Fit::Path;
  return Fit::All;
}

Reason reason_for(Fit best) {
  switch (best) {
    case Fit::None:
      return Reason::PortNotAllowed;
    case Fit::Port:
      return Reason::PathNotAllowed;
    case Fit::Path:
      return Reason::MethodNotGranted;
    case Fit::All:
      break;
  }
  return Reason::None;
}

Decision judge_allow_rules(const Grant& grant, const UseHttp& asked) {
  Fit best = Fit::None;
  std::optional<std::size_t> best_rule;
  for (const std::size_t i : grant.allow.naming(asked.host)) {
    const Fit found = fit(grant.allow[i], asked);
    const bool better = !best_rule || found > best ||
                        (found == best && grant.allow[i].max_body > grant.allow[*best_rule].max_body);
    if (!better) continue;
    best = found;
    best_rule = i;
  }
  const RuleRef rule{RuleRef::Kind::Allow, *best_rule};
  if (best == Fit::All) return allow(rule);
  const bool in_clear = best == Fit::None && asked.scheme == Scheme::Http;
  Decision decision = deny(in_clear ? reason_in_clear(grant, asked.host) : reason_for(best));
  decision.closest = rule;
  return decision;
}

struct Judge {
  const Grant& grant;

  Decision operator()(const ResolveName& operation) const { return judge_name(grant, operation.host); }

  Decision operator()(const Connect& operation) const {
    return judge_connection(grant, operation.host, operation.port);
  }

  Decision operator()(const UseGit& operation) const {
    const RepoId& repo = operation.route.repo;
    if (const Reason reason = judge_host(grant, repo.host); reason != Reason::None) return deny(reason);
    if (const auto denied = total_deny(grant, repo.host, operation.port))
      return deny(Reason::DeniedByRule, denied);
    if (operation.port != kHttpsPort) return deny(Reason::PortNotAllowed);
    const auto rule = deciding_rule(grant, repo);
    if (!rule) {
      Decision decision = deny(Reason::RepoNotGranted);
      if (const auto closest = closest_rule(grant, repo)) decision.closest = git_rule(*closest);
      return decision;
    }
    const bool covered = covers_service(grant.git[*rule].access, operation.route.service);
    return covered ? allow(git_rule(*rule)) : deny(Reason::PushNotGranted, git_rule(*rule));
  }

  Decision operator()(const UseHttp& asked) const {
    if (const Reason reason = judge_host(grant, asked.host); reason != Reason::None) return deny(reason);
    const auto denied = denying_rule(grant, asked.host, asked.port, [&](const DenyRule& rule) {
      return rule.methods.contains(asked.method) && has_path(rule.paths, asked.path, Case::Folded);
    });
    if (denied) return deny(Reason::DeniedByRule, denied);
    if (!grant.allow.names(asked.host)) {
      if (asked.scheme == Scheme::Http) return deny(reason_in_clear(grant, asked.host));
      const bool git_alone = grant.git.names(asked.host) && asked.port == kHttpsPort;
      return deny(git_alone ? Reason::NotGit : Reason::PortNotAllowed);
    }
    if (asked.path.is_git()) return deny(Reason::RepoNotGranted);
    return judge_allow_rules(grant, asked);
  }
};

// ---- rules to add ----

std::string git_text(const std::string& repo, Access access, std::string_view credential) {
  std::string text = "[[git]]\nrepo = \"" + repo + "\"\naccess = \"" + std::string(name(access)) + "\"";
  if (!credential.empty()) text += "\ncredential = \"" + std::string(credential) + "\"";
  return text;
}

std::string allow_text(const HostName& host, std::uint16_t port) {
  if (!special_name(host).empty()) return "";
  std::string text = "[[allow]]\nhost = \"" + host.str() + "\"";
  if (port != kHttpsPort) text += "\nports = [" + std::to_string(port) + "]";
  return text;
}

// The path as a pattern: what cannot stand in one as it is becomes a '*'.
std::string path_text(const HttpPath& path) {
  std::string text;
  for (const std::string& segment : path.segments()) {
    const bool plain = std::ranges::all_of(segment, [](char c) {
      return is_alnum(c) || std::string_view("-._~@+:,=").find(c) != std::string_view::npos;
    });
    text += "/" + (plain ? segment : "*");
  }
  return text.size() <= PathPattern::kMaxBytes ? text : "/**";
}

struct RuleFor {
  std::string_view credential;

  // A host that is known for git is most likely asked for because of it.
  std::string host_text(const HostName& host, std::uint16_t port) const {
    if (!special_name(host).empty() || is_dns_port(port)) return "";
    const bool git = port == kHttpsPort && well_known_kind(host) != HostKind::Generic;
    if (git) return git_text(host.str() + "/OWNER/NAME", Access::Fetch, credential);
    if (port == kHttpsPort || port == kHttpPort) return allow_text(host, port);
    return "[[tcp]]\nhost = \"" + host.str() + "\"\nport = " + std::to_string(port);
  }
  std::string operator()(const ResolveName& operation) const { return host_text(operation.host, kHttpsPort); }
  std::string operator()(const Connect& operation) const { return host_text(operation.host, operation.port); }
  std::string operator()(const UseGit& operation) const {
    const RepoId& repo = operation.route.repo;
    if (operation.port != kHttpsPort || !special_name(repo.host).empty()) return "";
    const Access access = operation.route.service == GitService::ReceivePack ? Access::Push : Access::Fetch;
    return git_text(repo.str(), access, credential);
  }
  std::string operator()(const UseHttp& asked) const {
    if (is_dns_port(asked.port) || asked.path.is_git()) return "";
    std::string text = allow_text(asked.host, asked.port);
    if (text.empty()) return "";
    if (asked.scheme != AllowRule{}.scheme_at(asked.port)) {
      text += "\nscheme = \"" + std::string(name(asked.scheme)) + "\"";
    }
    text += "\nmethods = [\"" + std::string(name(asked.method)) + "\"]\npaths = [\"" + path_text(asked.path) +
            "\"]";
    if (asked.path.has_encoded_slash()) text += "\nencoded_slash = true";
    if (asked.websocket) text += "\nwebsocket = true";
    return text;
  }
};

}  // namespace

std::string_view name(RuleRef::Kind kind) {
  switch (kind) {
    case RuleRef::Kind::Git:
      return "git";
    case RuleRef::Kind::Allow:
      return "allow";
    case RuleRef::Kind::Deny:
      return "deny";
    case RuleRef::Kind::Tcp:
      return "tcp";
  }
  return "";
}

const RuleSource& source_of(const Grant& grant, RuleRef rule) {
  switch (rule.kind) {
    case RuleRef::Kind::Git:
      return grant.git.at(rule.index).source;
    case RuleRef::Kind::Allow:
      return grant.allow.at(rule.index).source;
    case RuleRef::Kind::Deny:
      return grant.deny.at(rule.index).source;
    case RuleRef::Kind::Tcp:
      break;
  }
  return grant.tcp.at(rule.index).source;
}

Decision decide(const Grant& grant, const Operation& operation) {
  return std::visit(Judge{grant}, operation);
}

std::string line_to_add(const Operation& operation, std::string_view credential) {
  return std::visit(RuleFor{credential}, operation);
}

}  // namespace sallyport::policy
