#include "config/rule_lint.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>

#include "base/text.h"

namespace sallyport::config {
namespace {

std::string quoted(const policy::GitRule& rule) {
  return "'" + rule.repo.str() + "' (" + rule.source.str() + ")";
}

struct Candidate {
  const policy::GitRule* rule;
  std::size_t wildcards;
  std::size_t index;
};

bool decides_before(const Candidate& a, const Candidate& b) {
  return a.wildcards != b.wildcards ? a.wildcards < b.wildcards : a.index < b.index;
}

// What is wrong with `rule` when `other` takes all its repositories.
Problem dead_rule(const Candidate& rule, const Candidate& other, const Place& place) {
  if (rule.rule->repo.same_as(other.rule->repo)) {
    return {place, "this rule names the same repositories as " + quoted(*other.rule), "remove one of them"};
  }
  const std::string message =
      "this rule never decides: " + quoted(*other.rule) + " matches all its repositories";
  if (rule.wildcards == other.wildcards) {
    return {place, message + " and stands before it", "move this rule up"};
  }
  return {place, message + " and has fewer wildcards", "use fewer wildcards here, or remove it"};
}

const Candidate* find_taker(const Candidate& rule, const std::vector<Candidate>& others) {
  const auto found = std::ranges::find_if(others, [&](const Candidate& other) {
    return decides_before(other, rule) && other.rule->repo.covers(rule.rule->repo);
  });
  return found == others.end() ? nullptr : &*found;
}

}  // namespace

void lint_rules(const std::vector<policy::GitRule>& rules, const std::vector<Place>& places,
                Problems& problems) {
  // Only an equal text or a pattern with wildcards can take a rule's repositories. Looking at these alone
  // keeps thousands of plain rules from being compared each with each.
  std::map<std::string, std::vector<Candidate>> by_text;
  std::vector<Candidate> patterns;
  std::vector<Candidate> all;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const Candidate candidate{&rules[i], rules[i].repo.wildcards(), i};
    all.push_back(candidate);
    by_text[lowered(rules[i].repo.str())].push_back(candidate);
    if (candidate.wildcards > 0) patterns.push_back(candidate);
  }
  for (const Candidate& rule : all) {
    const Candidate* other = find_taker(rule, by_text[lowered(rule.rule->repo.str())]);
    if (other == nullptr) other = find_taker(rule, patterns);
    if (other != nullptr) problems.push_back(dead_rule(rule, *other, places.at(rule.index)));
  }
}

}  // namespace sallyport::config
