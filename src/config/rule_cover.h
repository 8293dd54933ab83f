// When one rule says all that another says. For the lint of rules: what is not found out within its effort is
// not reported.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "policy/rule_list.h"

namespace sallyport::config {

// Rules that name the same hosts again and again, with thousands of paths each, are compared with each other.
// Nobody writes such a file who wants to be told of mistakes.
class Effort {
 public:
  static constexpr std::size_t kMaxComparisons = 4'000'000;

  // False when it is used up.
  bool spend(std::size_t comparisons) {
    left_ -= std::min(left_, comparisons);
    return left_ > 0;
  }

 private:
  std::size_t left_ = kMaxComparisons;
};

// Hosts, to be asked whether one is below a name.
class HostSet {
 public:
  void add(const policy::HostName& host);
  void sort();  // before the first question
  bool has_below(const policy::HostName& base) const;

 private:
  std::vector<std::string> reversed_;  // so that names below one stand behind each other
};

// Apart from their hosts: all that `rule` allows or forbids, `other` does too.
bool says_all(const policy::AllowRule& other, const policy::AllowRule& rule, Effort& effort);
bool says_all(const policy::DenyRule& other, const policy::DenyRule& rule, Effort& effort);
// Apart from their hosts: `denied` forbids all that `rule` allows.
bool forbids_all(const policy::DenyRule& denied, const policy::AllowRule& rule, Effort& effort);

// The first of `rules` for which `covers_rest(index)` and whose hosts cover all of `hosts`; none when
// `spoils(index)` for any rule that names one of these.
template <typename Rule, typename CoversRest, typename Spoils>
std::optional<std::size_t> covering_rule(const std::vector<policy::HostPattern>& hosts,
                                         const policy::RuleList<Rule>& rules, CoversRest covers_rest,
                                         Spoils spoils, Effort& effort) {
  std::vector<std::size_t> candidates;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    std::vector<std::size_t> found = rules.index().covering(hosts[i]);
    if (!effort.spend(found.size() + 1) || std::ranges::any_of(found, spoils)) return std::nullopt;
    std::ranges::sort(found);
    if (i == 0) {
      const auto repeated = std::ranges::unique(found);
      found.erase(repeated.begin(), repeated.end());
      std::erase_if(found, [&](std::size_t rule) { return !covers_rest(rule); });
      candidates = std::move(found);
    } else {
      std::erase_if(candidates, [&](std::size_t rule) { return !std::ranges::binary_search(found, rule); });
    }
    if (candidates.empty()) return std::nullopt;
  }
  return candidates.empty() ? std::nullopt : std::optional(candidates.front());
}

}  // namespace sallyport::config
