// The rules of a policy, parsed. docs/policy.md describes them for those who write them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/host_pattern.h"
#include "policy/http_path.h"
#include "policy/method.h"
#include "policy/repo.h"

namespace sallyport::policy {

inline constexpr std::uint16_t kHttpsPort = 443;
inline constexpr std::uint16_t kHttpPort = 80;

enum class Scheme : std::uint8_t { Https, Http };
std::string_view name(Scheme scheme);

// DNS in the clear and over TLS: names are looked up at the gate alone, so no rule opens these.
constexpr bool is_dns_port(std::uint16_t port) {
  return port == 53 || port == 853;
}

// Where a rule was written: "sallyport.toml:3" or "--git".
struct RuleSource {
  std::string file;
  int line = 0;  // 0: the command line, and `file` is the option

  std::string str() const;
  bool operator==(const RuleSource&) const = default;
};

enum class Access : std::uint8_t { Fetch, Push };  // Push includes Fetch
std::string_view name(Access access);

// [[git]]
struct GitRule {
  RepoPattern repo;
  Access access;
  std::string credential;  // a name in the operator's file; empty: anonymous
  RuleSource source;
};

// Inspect: TLS ends at the gate, and every request is judged. Splice: the connection is passed on as it is,
// and nothing but the host is judged.
enum class TlsMode : std::uint8_t { Inspect, Splice };
std::string_view name(TlsMode mode);

// How much one rule may list. Many names are one rule: lists of blocked or of permitted hosts are long.
inline constexpr std::size_t kMaxRuleHosts = 200'000;
inline constexpr std::size_t kMaxRulePorts = 64;
inline constexpr std::size_t kMaxRulePaths = 1'000;

inline constexpr std::uint64_t kDefaultMaxBody = std::uint64_t{10} << 20U;

// [[allow]]: HTTP requests without a credential. A request is allowed when one rule allows all of it.
struct AllowRule {
  std::vector<HostPattern> hosts;
  std::vector<std::uint16_t> ports = {kHttpsPort};
  std::optional<Scheme> scheme;  // none: HTTP in the clear at port 80, TLS at every other
  Methods methods = {Method::Get, Method::Head};
  std::vector<PathPattern> paths;            // empty: every path
  std::uint64_t max_body = kDefaultMaxBody;  // bytes of a request's body
  TlsMode tls = TlsMode::Inspect;
  bool websocket = false;
  bool encoded_slash = false;
  RuleSource source;

  Scheme scheme_at(std::uint16_t port) const {
    return scheme.value_or(port == kHttpPort ? Scheme::Http : Scheme::Https);
  }
};

// [[deny]]: wins over every [[allow]].
struct DenyRule {
  std::vector<HostPattern> hosts;
  std::vector<std::uint16_t> ports;  // empty: every port
  Methods methods = Methods::all();
  std::vector<PathPattern> paths;  // empty: every path; compared without case
  RuleSource source;

  // The host, whatever is asked of it at that port.
  bool is_total() const { return methods == Methods::all() && paths.empty(); }
};

// [[tcp]]: one port of one host, whatever is spoken there.
struct TcpRule {
  HostName host;
  std::uint16_t port;
  RuleSource source;
};

}  // namespace sallyport::policy
