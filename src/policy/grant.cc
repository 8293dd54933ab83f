#include "policy/grant.h"

namespace sallyport::policy {

const UpstreamHost* Grant::find_host(const HostName& host) const {
  const auto found = hosts.find(host);
  return found == hosts.end() ? nullptr : &found->second;
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
