#include "policy/grant.h"

#include <algorithm>

namespace sallyport::policy {

const UpstreamHost* Grant::find_host(const HostName& host) const {
  if (const auto found = hosts.find(host); found != hosts.end()) return &found->second;
  if (hosts_below.empty()) return nullptr;
  const std::string_view name = host.str();
  for (std::size_t dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.', dot + 1)) {
    const auto above = HostName::parse(name.substr(dot + 1));
    if (!above) return nullptr;  // a single label
    if (const auto found = hosts_below.find(*above); found != hosts_below.end()) return &found->second;
  }
  return nullptr;
}

bool Grant::uses_system_roots() const {
  const auto does = [](const auto& entry) { return entry.second.ca_pem.empty(); };
  // Hosts that a rule names without an entry of their own are reached as any other is.
  return !allow.empty() || std::ranges::any_of(hosts, does) || std::ranges::any_of(hosts_below, does);
}

const UpstreamHost& Grant::upstream(const HostName& host) const {
  static const UpstreamHost kOrdinary;
  const UpstreamHost* entry = find_host(host);
  return entry != nullptr ? *entry : kOrdinary;
}

HostKind Grant::kind_of(const HostName& host) const {
  const UpstreamHost* entry = find_host(host);
  return entry != nullptr ? entry->kind : well_known_kind(host);
}

}  // namespace sallyport::policy
