// What one session may do: the parsed policy, immutable. Made by config from the two files and the command
// line; the warden gives the same Grant to gate and vault.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/address.h"
#include "policy/repo.h"

namespace sallyport::policy {

enum class Access : std::uint8_t { Fetch, Push };  // Push includes Fetch
std::string_view name(Access access);

// Where a rule was written: "sallyport.toml:3" or "--git".
struct RuleSource {
  std::string file;
  int line = 0;  // 0: the command line, and `file` is the option

  std::string str() const;
};

struct GitRule {
  RepoPattern repo;
  Access access;
  std::string credential;  // a name in the operator's file; empty: anonymous
  RuleSource source;
};

// What the operator's file says of a host, or the defaults for one that it does not mention.
struct UpstreamHost {
  HostKind kind = HostKind::Generic;
  std::optional<PinnedAddress> address;
  bool allow_private = false;
  std::string ca_pem;  // empty: the system's roots
};

struct Grant {
  std::vector<GitRule> git;
  std::map<HostName, UpstreamHost> hosts;  // one for every host that a rule names

  bool empty() const { return git.empty(); }
  // The host's entry, or nullptr when no rule names it.
  const UpstreamHost* find_host(const HostName& host) const;
  HostKind kind_of(const HostName& host) const;
};

}  // namespace sallyport::policy
