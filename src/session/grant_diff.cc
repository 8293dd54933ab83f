#include "session/grant_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "base/text.h"
#include "policy/explained_rule.h"

namespace sallyport::session {
namespace {

using Lines = std::multiset<std::string>;
using Kind = policy::RuleRef::Kind;

// As somebody sees them who asks for each one's first host.
Lines rules_in_words(const policy::Grant& grant) {
  Lines lines;
  const auto add = [&](Kind kind, std::size_t index, const policy::HostName& host) {
    const policy::ExplainedRule rule = policy::explained(grant, {kind, index}, host);
    lines.insert(fmt::format("[[{}]] {}", policy::name(kind), rule.says));
  };
  for (std::size_t i = 0; i < grant.git.size(); ++i) add(Kind::Git, i, grant.git[i].repo.host());
  for (std::size_t i = 0; i < grant.allow.size(); ++i)
    add(Kind::Allow, i, grant.allow[i].hosts.front().base());
  for (std::size_t i = 0; i < grant.deny.size(); ++i) add(Kind::Deny, i, grant.deny[i].hosts.front().base());
  for (std::size_t i = 0; i < grant.tcp.size(); ++i) add(Kind::Tcp, i, grant.tcp[i].host);
  return lines;
}

void add_missing(std::vector<std::string>& changes, char mark, const Lines& from, const Lines& in) {
  std::vector<std::string> missing;
  std::ranges::set_difference(from, in, std::back_inserter(missing));
  for (const std::string& line : missing) {
    changes.push_back(fmt::format("{} {}", mark, escaped(line, kMaxChangeLineBytes)));
  }
}

}  // namespace

std::vector<std::string> changes_in_words(const GrantPlan& before, const GrantPlan& after) {
  const Lines was = rules_in_words(before.grant);
  const Lines is = rules_in_words(after.grant);
  std::vector<std::string> changes;
  add_missing(changes, '-', was, is);
  add_missing(changes, '+', is, was);
  if (changes.size() > kMaxChangeLines) {
    const std::size_t more = changes.size() - kMaxChangeLines;
    changes.resize(kMaxChangeLines);
    changes.push_back(fmt::format("... and {} more rules", more));
  }
  const policy::Grant& old = before.grant;
  const policy::Grant& now = after.grant;
  if (before.credentials != after.credentials) changes.emplace_back("the credentials' places");
  if (old.hosts != now.hosts || old.hosts_below != now.hosts_below)
    changes.emplace_back("how hosts are reached");
  if (old.resolvers != now.resolvers) changes.emplace_back("the name servers");
  if (old.limits != now.limits) changes.emplace_back("the limits");
  if (old.timeouts != now.timeouts) changes.emplace_back("the timeouts");
  if (changes.empty()) changes.emplace_back("the places or particulars of rules");
  return changes;
}

}  // namespace sallyport::session
