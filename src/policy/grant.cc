#include "policy/grant.h"

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
