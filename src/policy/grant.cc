#include "policy/grant.h"

namespace sallyport::policy {

std::string_view name(Access access) {
  switch (access) {
    case Access::Fetch:
      return "fetch";
    case Access::Push:
      return "push";
  }
  return "";
}

std::string RuleSource::str() const {
  return line == 0 ? file : file + ":" + std::to_string(line);
}

const UpstreamHost* Grant::find_host(const HostName& host) const {
  const auto found = hosts.find(host);
  return found == hosts.end() ? nullptr : &found->second;
}

HostKind Grant::kind_of(const HostName& host) const {
  const UpstreamHost* entry = find_host(host);
  return entry != nullptr ? entry->kind : well_known_kind(host);
}

}  // namespace sallyport::policy
