#include "policy/rule_list.h"

namespace sallyport::policy {

void HostIndex::add(const HostPattern& pattern, std::size_t rule) {
  Table& table = pattern.is_wildcard() ? below_ : exact_;
  std::vector<std::size_t>& rules = table[pattern.base().str()];
  if (rules.empty() || rules.back() != rule) rules.push_back(rule);
}

template <typename Visit>
void HostIndex::visit(std::string_view name, const Table& own, Visit visit) const {
  if (const auto found = own.find(name); found != own.end() && !visit(found->second)) return;
  if (below_.empty()) return;
  // A name has at most 127 labels.
  for (std::size_t dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.', dot + 1)) {
    const auto found = below_.find(name.substr(dot + 1));
    if (found != below_.end() && !visit(found->second)) return;
  }
}

std::vector<std::size_t> HostIndex::find(const HostName& host) const {
  std::vector<std::size_t> found;
  visit(host.str(), exact_, [&](const std::vector<std::size_t>& rules) {
    found.insert(found.end(), rules.begin(), rules.end());
    return true;
  });
  return found;
}

bool HostIndex::contains(const HostName& host) const {
  bool any = false;
  visit(host.str(), exact_, [&](const std::vector<std::size_t>& /*rules*/) {
    any = true;
    return false;
  });
  return any;
}

std::vector<std::size_t> HostIndex::covering(const HostPattern& pattern) const {
  std::vector<std::size_t> found;
  visit(pattern.base().str(), table_of(pattern), [&](const std::vector<std::size_t>& rules) {
    found.insert(found.end(), rules.begin(), rules.end());
    return true;
  });
  return found;
}

const std::vector<std::size_t>* HostIndex::with(const HostPattern& pattern) const {
  const Table& table = table_of(pattern);
  const auto found = table.find(pattern.base().str());
  return found == table.end() ? nullptr : &found->second;
}

}  // namespace sallyport::policy
