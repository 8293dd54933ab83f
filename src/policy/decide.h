// The one decision. Pure: no I/O, no clock, no state. Every entry (DNS, TLS, git, `policy explain`, the
// vault's own check) calls it with the same Grant.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/reason.h"
#include "policy/git_route.h"
#include "policy/grant.h"

namespace sallyport::policy {

// A name is asked for in DNS.
struct ResolveName {
  HostName host;
};
// A TLS connection is opened to host:port; what it will ask for is not known yet.
struct OpenTls {
  HostName host;
  std::uint16_t port;
};
// A git request.
struct UseGit {
  GitRoute route;
  std::uint16_t port;
};
using Operation = std::variant<ResolveName, OpenTls, UseGit>;

enum class Verdict : std::uint8_t { Deny, Allow };

struct Decision {
  Verdict verdict = Verdict::Deny;
  Reason reason = Reason::PolicyEmpty;  // None when allowed
  // Index into Grant::git: the rule that decided a UseGit, also when it denied (fetch only).
  std::optional<std::size_t> rule;
  // When the host is named but no rule matched the repository: the rule that shares the most leading
  // segments.
  std::optional<std::size_t> closest;

  bool allowed() const { return verdict == Verdict::Allow; }
};

inline constexpr std::uint16_t kHttpsPort = 443;

// Reasons: PolicyEmpty, HostNotAllowed, PortNotAllowed, RepoNotGranted, PushNotGranted, asked in this order.
// Of the rules that match a repository the most specific one decides: fewest wildcards, then the earliest.
// ResolveName and OpenTls are allowed for a host that some rule names; OpenTls and UseGit only at port 443.
Decision decide(const Grant& grant, const Operation& operation);

// The rule to add to the policy so that `operation` would be allowed, as TOML of three or four lines without
// a final newline, or "" when no rule can do that (another port, a special name). For a host alone it has the
// placeholders OWNER/NAME. A `credential` that is not empty gets its line.
std::string line_to_add(const Operation& operation, std::string_view credential = {});

}  // namespace sallyport::policy
