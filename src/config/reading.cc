#include "config/reading.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace sallyport::config {

void check_version(TableReader& root, Problems& problems) {
  const Value* version = root.require("version", Value::Kind::Integer, "begin it with version = 1");
  if (version != nullptr && version->integer != 1) {
    problems.push_back({version->place,
                        "version " + std::to_string(version->integer) + " of the format is not known",
                        "write version = 1"});
  }
}

bool is_credential_name(std::string_view text) {
  if (text.empty() || text.size() > kMaxCredentialNameBytes || !is_lower(text.front())) return false;
  return std::ranges::all_of(text, [](char c) { return is_lower(c) || is_digit(c) || c == '-' || c == '_'; });
}

Problem bad_credential_name(const Place& place) {
  return {place, "this is not a credential's name",
          "use lower-case letters, digits, '-' and '_', at most 32; never write a token here"};
}

policy::HostKind kind_of(const OperatorConfig& config, const policy::HostName& host) {
  const auto entry = config.hosts.find(host);
  return entry == config.hosts.end() ? policy::well_known_kind(host) : entry->second.upstream.kind;
}

Result<policy::RepoPattern> parse_pattern(std::string_view text, const OperatorConfig& config) {
  Result<policy::HostName> host = policy::host_of_repo(text);
  // A scheme has a better message of its own, and needs no kind.
  if (!host) return policy::RepoPattern::parse(text, policy::HostKind::Generic);
  return policy::RepoPattern::parse(text, kind_of(config, *host));
}

}  // namespace sallyport::config
