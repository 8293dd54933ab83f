#include "config/rule_cover.h"

#include <cstdint>

namespace sallyport::config {
namespace {

using Ports = std::vector<std::uint16_t>;
using Paths = std::vector<policy::PathPattern>;

bool has_all(const Ports& ports, const Ports& others) {
  return std::ranges::all_of(
      others, [&](std::uint16_t port) { return std::ranges::find(ports, port) != ports.end(); });
}

// None at all means every path.
bool covers(const Paths& paths, const Paths& others, Effort& effort) {
  if (paths.empty()) return true;
  if (others.empty()) return std::ranges::any_of(paths, [](const auto& path) { return path.str() == "/**"; });
  return std::ranges::all_of(others, [&](const policy::PathPattern& other) {
    return std::ranges::any_of(
        paths, [&](const policy::PathPattern& path) { return effort.spend(1) && path.covers(other); });
  });
}

}  // namespace

void HostSet::add(const policy::HostName& host) {
  reversed_.emplace_back(host.str().rbegin(), host.str().rend());
}

void HostSet::sort() {
  std::ranges::sort(reversed_);
}

bool HostSet::has_below(const policy::HostName& base) const {
  const std::string prefix = std::string(base.str().rbegin(), base.str().rend()) + ".";
  const auto found = std::ranges::lower_bound(reversed_, prefix);
  return found != reversed_.end() && found->starts_with(prefix);
}

bool says_all(const policy::AllowRule& other, const policy::AllowRule& rule, Effort& effort) {
  const auto same_scheme = [&](std::uint16_t port) { return other.scheme_at(port) == rule.scheme_at(port); };
  return other.tls == rule.tls && std::ranges::all_of(rule.ports, same_scheme) &&
         has_all(other.ports, rule.ports) && other.methods.contains(rule.methods) &&
         other.max_body >= rule.max_body && (other.websocket || !rule.websocket) &&
         (other.encoded_slash || !rule.encoded_slash) && covers(other.paths, rule.paths, effort);
}

bool says_all(const policy::DenyRule& other, const policy::DenyRule& rule, Effort& effort) {
  const bool ports = other.ports.empty() || (!rule.ports.empty() && has_all(other.ports, rule.ports));
  return ports && other.methods.contains(rule.methods) && covers(other.paths, rule.paths, effort);
}

bool forbids_all(const policy::DenyRule& denied, const policy::AllowRule& rule, Effort& effort) {
  const bool ports = denied.ports.empty() || has_all(denied.ports, rule.ports);
  return ports && denied.methods.contains(rule.methods) && covers(denied.paths, rule.paths, effort);
}

}  // namespace sallyport::config
