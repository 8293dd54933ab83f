// The one decision. Pure: no I/O, no clock, no state. Every entry (DNS, TLS, proxy, git, `policy explain`,
// the vault's own check) calls it with the same Grant.
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
#include "policy/http_path.h"
#include "policy/method.h"

namespace sallyport::policy {

// A name is asked for in DNS.
struct ResolveName {
  HostName host;
};
// A TCP connection is opened to host:port; what it will ask for is not known yet.
struct Connect {
  HostName host;
  std::uint16_t port;
};
// A git request.
struct UseGit {
  GitRoute route;
  std::uint16_t port;
};
// Any other HTTP request.
struct UseHttp {
  Scheme scheme;
  HostName host;
  std::uint16_t port;
  Method method;
  HttpPath path;
  bool websocket = false;  // it asks to become a WebSocket
};
using Operation = std::variant<ResolveName, Connect, UseGit, UseHttp>;

enum class Verdict : std::uint8_t { Deny, Allow };

// What is spoken on a connection, and so who reads it.
enum class Carriage : std::uint8_t {
  Inspect,    // TLS that ends at the gate
  Splice,     // TLS that is passed on after its ClientHello
  PlainHttp,  // HTTP in the clear
  Raw,        // whatever it is
};

struct RuleRef {
  enum class Kind : std::uint8_t { Git, Allow, Deny, Tcp };
  Kind kind;
  std::size_t index;  // into the Grant's list of that kind

  bool operator==(const RuleRef&) const = default;
};
std::string_view name(RuleRef::Kind kind);  // "git", as the policy has it

struct Decision {
  Verdict verdict = Verdict::Deny;
  Reason reason = Reason::PolicyEmpty;  // None when allowed
  // The rule that decided, also when it denied (fetch only, or a [[deny]]). None for a ResolveName, and for a
  // Connect that several rules allow.
  std::optional<RuleRef> rule;
  // When the host is named but no rule covers what was asked: the one that came closest.
  std::optional<RuleRef> closest;
  Carriage carriage = Carriage::Inspect;  // of a Connect that is allowed

  bool allowed() const { return verdict == Verdict::Allow; }
};

// Where a rule stands.
const RuleSource& source_of(const Grant& grant, RuleRef rule);

// Reasons, asked in this order: PolicyEmpty, HostNotAllowed, DeniedByRule (a [[deny]]), PortNotAllowed; then
// of git RepoNotGranted, PushNotGranted; of HTTP PlainHttp (in the clear, where only TLS would be allowed),
// NotGit (no
// [[allow]] names the host), PathNotAllowed, MethodNotGranted.
//
// Git: of the rules that match a repository the most specific one decides: fewest wildcards, then the
// earliest. Only at port 443, and never under a [[deny]] of the whole host there.
// HTTP: one [[allow]] that allows all of the request is enough; of several the one with the largest max_body
// is named. A URL of git's is RepoNotGranted here: it is asked for as UseGit. A Connect is allowed where some
// request may be; of the rules that name host and port the one with the most specific host says how TLS is
// treated, but a host with [[git]] rules is always inspected. One that would be spliced is DeniedByRule when
// a [[deny]] forbids a part of it, which nobody could see.
Decision decide(const Grant& grant, const Operation& operation);

// The rule to add to the policy so that `operation` would be allowed, as TOML of three or four lines without
// a final newline, or "" when no rule can do that (another port for git, a special name). For a host alone it
// allows GET of everything, or has the placeholders OWNER/NAME at a host that is known for git. A
// `credential` that is not empty gets its line, where it is git.
std::string line_to_add(const Operation& operation, std::string_view credential = {});

}  // namespace sallyport::policy
