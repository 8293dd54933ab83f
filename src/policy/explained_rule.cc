#include "policy/explained_rule.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/text.h"
#include "policy/similar.h"

namespace sallyport::policy {
namespace {

using Kind = RuleRef::Kind;

std::string and_more(std::size_t count) {
  return count == 0 ? "" : " and " + std::to_string(count) + " more";
}

std::string hosts_text(const std::vector<HostPattern>& hosts, const HostName& host) {
  const auto found = std::ranges::find_if(hosts, [&](const HostPattern& each) { return each.matches(host); });
  const HostPattern& shown = found == hosts.end() ? hosts.front() : *found;
  return shown.str() + and_more(hosts.size() - 1);
}

std::string ports_text(const std::vector<std::uint16_t>& ports) {
  std::string text = ports.size() == 1 ? "port " : "ports ";
  for (std::size_t i = 0; i < ports.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(ports[i]);
  return text;
}

std::string requests_text(Methods methods, const std::vector<PathPattern>& paths) {
  constexpr std::size_t kShown = 3;
  std::string text = methods == Methods::all() ? "every method" : methods.str();
  if (paths.empty()) return text;
  text += "; ";
  for (std::size_t i = 0; i < std::min(paths.size(), kShown); ++i)
    text += (i == 0 ? "" : ", ") + paths[i].str();
  return text + and_more(paths.size() - std::min(paths.size(), kShown));
}

std::string says(const GitRule& rule) {
  const std::string with = rule.credential.empty() ? "anonymous" : "credential \"" + rule.credential + "\"";
  return rule.repo.str() + " (" + std::string(name(rule.access)) + ", " + with + ")";
}

std::string says(const AllowRule& rule, const HostName& host) {
  std::string text = rule.tls == TlsMode::Splice ? "spliced" : requests_text(rule.methods, rule.paths);
  if (rule.ports != std::vector{kHttpsPort}) text += "; " + ports_text(rule.ports);
  if (rule.websocket) text += "; WebSocket";
  return hosts_text(rule.hosts, host) + " (" + text + ")";
}

std::string says(const DenyRule& rule, const HostName& host) {
  std::string text = rule.is_total() ? "everything" : requests_text(rule.methods, rule.paths);
  if (!rule.ports.empty()) text += "; " + ports_text(rule.ports);
  return hosts_text(rule.hosts, host) + " (" + text + ")";
}

// The nearest so far.
struct Nearest {
  std::optional<RuleRef> rule;
  std::size_t distance = std::numeric_limits<std::size_t>::max();

  void offer(Kind kind, std::size_t index, std::size_t its_distance) {
    if (its_distance >= distance) return;
    rule = RuleRef{kind, index};
    distance = its_distance;
  }
};

}  // namespace

std::string ExplainedRule::str() const {
  return source + ": [[" + std::string(name(kind)) + "]] " + says;
}

ExplainedRule explained(const Grant& grant, RuleRef rule, const HostName& host) {
  ExplainedRule result{rule.kind, "", source_of(grant, rule).str()};
  switch (rule.kind) {
    case Kind::Git:
      result.says = says(grant.git.at(rule.index));
      break;
    case Kind::Allow:
      result.says = says(grant.allow.at(rule.index), host);
      break;
    case Kind::Deny:
      result.says = says(grant.deny.at(rule.index), host);
      break;
    case Kind::Tcp:
      result.says = grant.tcp.at(rule.index).host.str() + ":" + std::to_string(grant.tcp.at(rule.index).port);
      break;
  }
  return result;
}

std::optional<RuleRef> nearest_by_host(const Grant& grant, const HostName& host) {
  Nearest nearest;
  const auto distance = [&](const HostName& other) { return edit_distance(other.str(), host.str()); };
  for (std::size_t i = 0; i < grant.git.size(); ++i) {
    nearest.offer(Kind::Git, i, distance(grant.git[i].repo.host()));
  }
  for (std::size_t i = 0; i < grant.allow.size(); ++i) {
    for (const HostPattern& pattern : grant.allow[i].hosts) {
      nearest.offer(Kind::Allow, i, pattern.matches(host) ? 0 : distance(pattern.base()));
    }
  }
  for (std::size_t i = 0; i < grant.tcp.size(); ++i) nearest.offer(Kind::Tcp, i, distance(grant.tcp[i].host));
  return nearest.rule;
}

std::optional<RuleRef> nearest_by_repo(const Grant& grant, const RepoId& repo) {
  const std::string wanted = lowered(repo.str());
  Nearest nearest;
  for (std::size_t i = 0; i < grant.git.size(); ++i) {
    nearest.offer(Kind::Git, i, edit_distance(lowered(grant.git[i].repo.str()), wanted));
  }
  return nearest.rule;
}

}  // namespace sallyport::policy
