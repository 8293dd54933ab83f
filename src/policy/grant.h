// What one session may do: the parsed policy, immutable. Made by config from the two files and the command
// line; the warden gives the same Grant to gate and vault.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "policy/address.h"
#include "policy/limits.h"
#include "policy/repo.h"
#include "policy/rule_list.h"

namespace sallyport::policy {

// What the operator's file says of a host, or the defaults for one that it does not mention.
struct UpstreamHost {
  HostKind kind = HostKind::Generic;
  std::optional<PinnedAddress> address;
  bool allow_private = false;
  std::string ca_pem;  // empty: the system's roots

  bool operator==(const UpstreamHost&) const = default;
};

// How long the other side may take. docs/git-protocol.md repeats the defaults; the operator's file changes
// them.
struct Timeouts {
  std::chrono::milliseconds connect = std::chrono::seconds(10);  // TCP, all addresses of a name together
  std::chrono::milliseconds tls = std::chrono::seconds(10);      // the upstream's handshake
  std::chrono::milliseconds request_head = std::chrono::seconds(10);
  // From the request's last byte to the answer's first: git's servers count and compress objects meanwhile.
  std::chrono::milliseconds first_byte = std::chrono::seconds(600);
  // Between two bytes, in either direction, of client and upstream alike. The whole has no limit.
  std::chrono::milliseconds idle = std::chrono::seconds(600);

  bool operator==(const Timeouts&) const = default;
};
inline constexpr std::chrono::milliseconds kMinTimeout{1};
inline constexpr std::chrono::milliseconds kMaxTimeout = std::chrono::hours(24);

struct Grant {
  RuleList<GitRule> git;
  RuleList<AllowRule> allow;
  RuleList<DenyRule> deny;
  RuleList<TcpRule> tcp;
  // Every host of [[git]] and [[tcp]], and the operator's that a rule names.
  std::map<HostName, UpstreamHost> hosts;
  std::map<HostName, UpstreamHost> hosts_below;  // of the operator's "*.NAME", by NAME
  Timeouts timeouts;
  Limits limits;
  std::vector<PinnedAddress> resolvers;  // name servers, at most kMaxResolvers; empty: those of resolv.conf

  // Some host's certificate is checked with the system's roots.
  bool uses_system_roots() const;
  std::size_t rules() const { return git.size() + allow.size() + deny.size() + tcp.size(); }
  bool empty() const { return git.empty() && allow.empty() && tcp.empty(); }
  // How to reach a host, whether it has an entry or not.
  const UpstreamHost& upstream(const HostName& host) const;
  // The host's own entry, else that of the longest "*.NAME" that it is below, else nullptr.
  const UpstreamHost* find_host(const HostName& host) const;
  HostKind kind_of(const HostName& host) const;
};

}  // namespace sallyport::policy
