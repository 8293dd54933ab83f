// Rules, and which of them name a host: the cost of asking does not grow with their number.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "policy/rule.h"

namespace sallyport::policy {

class HostIndex {
 public:
  void add(const HostPattern& pattern, std::size_t rule);
  // The rules whose pattern matches: those of the name itself first, then those of the longest name above it,
  // and so on; of one name in the order in which they were added. A rule with several patterns may come
  // twice.
  std::vector<std::size_t> find(const HostName& host) const;
  bool contains(const HostName& host) const;
  // The rules with a pattern that covers this one, in the same order.
  std::vector<std::size_t> covering(const HostPattern& pattern) const;
  // The rules with this very pattern, or nullptr.
  const std::vector<std::size_t>* with(const HostPattern& pattern) const;

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  using Table = std::unordered_map<std::string, std::vector<std::size_t>, Hash, std::equal_to<>>;
  // Calls visit(rules) for the entry of `name` in `own`, then for each wildcard above; until it returns
  // false.
  template <typename Visit>
  void visit(std::string_view name, const Table& own, Visit visit) const;
  const Table& table_of(const HostPattern& pattern) const { return pattern.is_wildcard() ? below_ : exact_; }

  Table exact_;
  Table below_;  // by the pattern's base
};

template <typename Rule>
class RuleList {
 public:
  RuleList() = default;
  RuleList(std::initializer_list<Rule> rules) {
    for (const Rule& rule : rules) push_back(rule);
  }

  void push_back(Rule rule) {
    add_hosts(rule, rules_.size());
    rules_.push_back(std::move(rule));
  }

  // Indexes of the rules that name the host, the most specific pattern first.
  std::vector<std::size_t> naming(const HostName& host) const { return index_.find(host); }
  bool names(const HostName& host) const { return index_.contains(host); }
  const HostIndex& index() const { return index_; }

  const Rule& operator[](std::size_t index) const { return rules_[index]; }
  const Rule& at(std::size_t index) const { return rules_.at(index); }
  const Rule& front() const { return rules_.front(); }
  std::size_t size() const { return rules_.size(); }
  bool empty() const { return rules_.empty(); }
  auto begin() const { return rules_.begin(); }
  auto end() const { return rules_.end(); }

 private:
  void add_hosts(const GitRule& rule, std::size_t index) {
    index_.add(HostPattern::exactly(rule.repo.host()), index);
  }
  void add_hosts(const TcpRule& rule, std::size_t index) {
    index_.add(HostPattern::exactly(rule.host), index);
  }
  // [[allow]] and [[deny]]
  template <typename WithHosts>
  void add_hosts(const WithHosts& rule, std::size_t index) {
    for (const HostPattern& host : rule.hosts) index_.add(host, index);
  }

  std::vector<Rule> rules_;
  HostIndex index_;
};

}  // namespace sallyport::policy
