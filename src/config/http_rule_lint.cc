#include "config/http_rule_lint.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "config/rule_cover.h"

namespace sallyport::config {
namespace {

using policy::AllowRule;
using policy::DenyRule;
using policy::HostPattern;
using policy::TlsMode;

using Ports = std::vector<std::uint16_t>;

bool has_port(const Ports& ports, std::uint16_t port) {
  return std::ranges::find(ports, port) != ports.end();
}

// One that both have; of a [[deny]] none written means every port.
std::optional<std::uint16_t> shared_port(const AllowRule& rule, const Ports& others) {
  const auto found = std::ranges::find_if(
      rule.ports, [&](std::uint16_t port) { return others.empty() || has_port(others, port); });
  return found == rule.ports.end() ? std::nullopt : std::optional(*found);
}

template <typename Rule>
std::string at(const Rule& rule) {
  return rule.source.str();
}

class Lint {
 public:
  Lint(const PolicyFile& policy, const policy::Grant& grant, Problems& problems)
      : policy_(policy), grant_(grant), problems_(problems) {}

  void run() {
    for (std::size_t i = 0; i < policy_.allow.size(); ++i) {
      check_spliced(i);
      check_use_of_allow(i);
    }
    const HostSet allowed = hosts_of_allow();
    const HostSet all = all_hosts();
    for (std::size_t i = 0; i < policy_.deny.size(); ++i) {
      check_use_of_deny(i, allowed, all);
      check_denied_parts(policy_.deny[i]);
    }
    for (std::size_t i = 0; i < policy_.tcp.size(); ++i) check_tcp(i);
    for (std::size_t i = 0; i < policy_.git.size(); ++i) check_git(i);
  }

 private:
  void problem(const Place& place, std::string message, std::string remedy) {
    problems_.push_back({place, std::move(message), std::move(remedy)});
  }

  // ---- how TLS is treated ----

  void check_spliced(std::size_t index) {
    const Written<AllowRule>& written = policy_.allow[index];
    for (std::size_t i = 0; i < written.rule.hosts.size(); ++i) {
      const HostPattern& host = written.rule.hosts[i];
      check_one_way(index, host, written.host_places[i]);
      if (written.rule.tls == TlsMode::Splice) check_splice(written.rule, host, written.host_places[i]);
    }
  }

  // Of the rules with this very host all speak the same, and treat TLS in the same way.
  void check_one_way(std::size_t index, const HostPattern& host, const Place& place) {
    const AllowRule& rule = grant_.allow[index];
    for (const std::size_t other : *grant_.allow.index().with(host)) {
      if (other >= index || !effort_.spend(1)) return;
      const auto port = shared_port(rule, grant_.allow[other].ports);
      if (!port) continue;
      if (grant_.allow[other].scheme_at(*port) != rule.scheme_at(*port)) {
        return problem(place,
                       "'" + host.str() + "' at port " + std::to_string(*port) + " is " +
                           std::string(name(rule.scheme_at(*port))) + " here and " +
                           std::string(name(grant_.allow[other].scheme_at(*port))) + " by the rule at " +
                           at(grant_.allow[other]),
                       "give both the same scheme");
      }
      if (grant_.allow[other].tls == rule.tls) continue;
      const bool splice = rule.tls == TlsMode::Splice;
      return problem(place,
                     "'" + host.str() + "' at port " + std::to_string(*port) + " is " +
                         (splice ? "spliced here and inspected" : "inspected here and spliced") +
                         " by the rule at " + at(grant_.allow[other]),
                     "give both the same tls");
    }
  }

  void check_splice(const AllowRule& rule, const HostPattern& host, const Place& place) {
    if (!host.is_wildcard() && has_port(rule.ports, policy::kHttpsPort) && grant_.git.names(host.base())) {
      problem(place,
              "'" + host.str() + "' is spliced here, and has [[git]] rules, whose requests must be read",
              "write tls = \"inspect\"");
    }
    for (const std::size_t i : grant_.deny.index().covering(host)) {
      const DenyRule& denied = grant_.deny[i];
      if (!effort_.spend(1)) return;
      if (denied.is_total() || !shared_port(rule, denied.ports)) continue;
      return problem(place,
                     "'" + host.str() + "' is spliced here, and the [[deny]] at " + at(denied) +
                         " forbids a part of it, which nobody could see",
                     "write tls = \"inspect\", or deny the whole host");
    }
  }

  // A host below a spliced wildcard of which a part is denied.
  void check_denied_parts(const Written<DenyRule>& written) {
    if (written.rule.is_total()) return;
    for (std::size_t i = 0; i < written.rule.hosts.size(); ++i) {
      const HostPattern& host = written.rule.hosts[i];
      for (const std::size_t other : grant_.allow.index().covering(host)) {
        const AllowRule& rule = grant_.allow[other];
        if (!effort_.spend(1)) return;
        if (!shared_port(rule, written.rule.ports)) continue;
        // The most specific host decides; of the very host, check_splice() has said it.
        if (rule.tls == TlsMode::Inspect || std::ranges::find(rule.hosts, host) != rule.hosts.end()) break;
        problem(written.host_places[i],
                "the [[allow]] at " + at(rule) + " splices '" + host.str() +
                    "', so nobody could see which part of it is denied",
                "deny the whole host, or give it a rule with tls = \"inspect\"");
        break;
      }
    }
  }

  // ---- rules without effect ----

  void check_use_of_allow(std::size_t index) {
    const Written<AllowRule>& written = policy_.allow[index];
    const AllowRule& rule = written.rule;
    const auto denying = covering_rule(
        rule.hosts, grant_.deny,
        [&](std::size_t other) { return forbids_all(grant_.deny[other], rule, effort_); },
        [](std::size_t) { return false; }, effort_);
    if (denying) {
      return problem(written.place,
                     "this [[allow]] allows nothing: the [[deny]] at " + at(grant_.deny[*denying]) +
                         " forbids all of it",
                     "remove one of them");
    }
    // Where a rule that treats TLS in another way names the host, this one may be there to be more specific.
    const auto differs = [&](std::size_t other) {
      return grant_.allow[other].tls != rule.tls && shared_port(rule, grant_.allow[other].ports);
    };
    if (const auto other = taker(index, grant_.allow, differs)) {
      problem(written.place,
              "this [[allow]] adds nothing: the one at " + at(grant_.allow[*other]) + " allows all of it",
              "remove one of them");
    }
  }

  void check_use_of_deny(std::size_t index, const HostSet& allowed, const HostSet& all) {
    const Written<DenyRule>& written = policy_.deny[index];
    const bool total = written.rule.is_total();
    const auto touches = [&](const HostPattern& host) {
      if (!grant_.allow.index().covering(host).empty()) return true;
      if (!total) return host.is_wildcard() && allowed.has_below(host.base());
      if (host.is_wildcard()) return all.has_below(host.base());
      return grant_.git.names(host.base()) || grant_.tcp.names(host.base());
    };
    if (std::ranges::none_of(written.rule.hosts, touches)) {
      return problem(written.place,
                     total
                         ? "this [[deny]] forbids nothing: no rule allows any of its hosts"
                         : "this [[deny]] forbids nothing: no [[allow]] names any of its hosts, and nothing "
                           "else is judged by method and path",
                     "remove it, or correct its hosts");
    }
    if (const auto other = taker(index, grant_.deny, [](std::size_t) { return false; })) {
      problem(written.place,
              "this [[deny]] adds nothing: the one at " + at(grant_.deny[*other]) + " forbids all of it",
              "remove one of them");
    }
  }

  // Another rule of the list that says everything that rules[index] says. Of two equal ones, the first.
  template <typename Rule, typename Differs>
  std::optional<std::size_t> taker(std::size_t index, const policy::RuleList<Rule>& rules, Differs differs) {
    const Rule& rule = rules[index];
    const auto covers_rest = [&](std::size_t other) {
      return other != index && says_all(rules[other], rule, effort_);
    };
    const auto found = covering_rule(rule.hosts, rules, covers_rest, differs, effort_);
    if (!found || *found < index) return found;
    const bool equal = says_all(rule, rules[*found], effort_) &&
                       covering_rule(
                           rules[*found].hosts, rules, [&](std::size_t other) { return other == index; },
                           [](std::size_t) { return false; }, effort_);
    return equal ? std::nullopt : found;
  }

  // ---- [[tcp]] and [[git]] ----

  void check_tcp(std::size_t index) {
    const Written<policy::TcpRule>& written = policy_.tcp[index];
    const policy::TcpRule& rule = written.rule;
    const std::string here = "'" + rule.host.str() + "' at port " + std::to_string(rule.port);
    for (const std::size_t other : grant_.tcp.naming(rule.host)) {
      if (other >= index || grant_.tcp[other].port != rule.port) continue;
      return problem(written.place, here + " is named by the [[tcp]] at " + at(grant_.tcp[other]) + " too",
                     "remove one of them");
    }
    for (const std::size_t other : grant_.allow.naming(rule.host)) {
      if (!effort_.spend(1)) return;
      if (!has_port(grant_.allow[other].ports, rule.port)) continue;
      return problem(written.place,
                     here + " is passed on unread by this [[tcp]], and judged by the [[allow]] at " +
                         at(grant_.allow[other]),
                     "remove one of them");
    }
    if (rule.port == policy::kHttpsPort && grant_.git.names(rule.host)) {
      return problem(written.place, here + " is passed on unread by this [[tcp]], and has [[git]] rules",
                     "remove one of them");
    }
    check_denied(rule.host, rule.port, written.place, "[[tcp]]");
  }

  void check_git(std::size_t index) {
    check_denied(policy_.git[index].repo.host(), policy::kHttpsPort, policy_.places[index], "[[git]]");
  }

  void check_denied(const policy::HostName& host, std::uint16_t port, const Place& place,
                    std::string_view kind) {
    for (const std::size_t i : grant_.deny.naming(host)) {
      const DenyRule& denied = grant_.deny[i];
      if (!effort_.spend(1)) return;
      if (!denied.is_total() || (!denied.ports.empty() && !has_port(denied.ports, port))) continue;
      return problem(place,
                     "this " + std::string(kind) + " allows nothing: the [[deny]] at " + at(denied) +
                         " forbids its host",
                     "remove one of them");
    }
  }

  // ---- what is allowed at all ----

  HostSet hosts_of_allow() const {
    HostSet hosts;
    for (const AllowRule& rule : grant_.allow) {
      for (const HostPattern& host : rule.hosts) hosts.add(host.base());
    }
    hosts.sort();
    return hosts;
  }

  HostSet all_hosts() const {
    HostSet hosts = hosts_of_allow();
    for (const policy::GitRule& rule : grant_.git) hosts.add(rule.repo.host());
    for (const policy::TcpRule& rule : grant_.tcp) hosts.add(rule.host);
    hosts.sort();
    return hosts;
  }

  const PolicyFile& policy_;
  const policy::Grant& grant_;
  Problems& problems_;
  Effort effort_;
};

}  // namespace

void lint_http_rules(const PolicyFile& policy, const policy::Grant& grant, Problems& problems) {
  Lint(policy, grant, problems).run();
}

}  // namespace sallyport::config
