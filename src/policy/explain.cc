#include "policy/explain.h"

#include <utility>

#include "base/text.h"
#include "policy/url_parts.h"

namespace sallyport::policy {
namespace {

constexpr std::uint16_t kSshPort = 22;
constexpr std::uint16_t kGitPort = 9418;

// What was asked for beside the URL.
struct Asked {
  std::optional<GitService> service;
  std::optional<Method> method;
};

std::string with_port(const HostName& host, std::uint16_t port, std::uint16_t usual) {
  return host.str() + (port == usual ? "" : ":" + std::to_string(port));
}

std::string described(const Operation& operation) {
  struct Describe {
    std::string operator()(const ResolveName& asked) const { return "the host " + asked.host.str(); }
    std::string operator()(const Connect& asked) const {
      const bool by_tls = asked.port == kHttpsPort;
      return by_tls ? "the host " + asked.host.str()
                    : "a connection to " + asked.host.str() + ":" + std::to_string(asked.port);
    }
    std::string operator()(const UseGit& asked) const {
      const bool push = asked.route.service == GitService::ReceivePack;
      return (push ? "push to " : "fetch from ") + asked.route.repo.str();
    }
    std::string operator()(const UseHttp& asked) const {
      const std::uint16_t usual = asked.scheme == Scheme::Http ? kHttpPort : kHttpsPort;
      return (asked.websocket ? "WebSocket at " : std::string(name(asked.method)) + " ") +
             std::string(name(asked.scheme)) + "://" + with_port(asked.host, asked.port, usual) +
             escaped(asked.path.target(), kMaxTargetBytes);
    }
  };
  return std::visit(Describe{}, operation);
}

const HostName& host_of(const Operation& operation) {
  struct Host {
    const HostName& operator()(const UseGit& asked) const { return asked.route.repo.host; }
    const HostName& operator()(const ResolveName& asked) const { return asked.host; }
    const HostName& operator()(const Connect& asked) const { return asked.host; }
    const HostName& operator()(const UseHttp& asked) const { return asked.host; }
  };
  return std::visit(Host{}, operation);
}

Explanation refused(Reason reason, std::string asked, std::string advice = "") {
  Explanation explanation;
  explanation.reason = reason;
  explanation.asked = std::move(asked);
  explanation.sentence = info(reason).sentence;
  explanation.advice = std::move(advice);
  return explanation;
}

std::string what_is_judged(Carriage carriage) {
  switch (carriage) {
    case Carriage::Inspect:
      return "TLS ends at the gateway, and each request is judged by itself.";
    case Carriage::Splice:
      return "TLS is passed on as it is: nothing but the host is judged.";
    case Carriage::PlainHttp:
      return "It is HTTP in the clear, and each request is judged by itself.";
    case Carriage::Raw:
      return "Whatever is spoken there is passed on.";
  }
  return "";
}

// Why no rule can allow it, or "".
std::string no_rule_helps(const Operation& operation, Reason reason) {
  if (const std::string_view why = special_name(host_of(operation)); !why.empty()) {
    return "No rule can name this host: its name " + std::string(why) + ".";
  }
  if (const auto* connect = std::get_if<Connect>(&operation);
      connect != nullptr && is_dns_port(connect->port)) {
    return "No rule opens this port: the gateway answers DNS itself.";
  }
  if (reason == Reason::PlainHttp) return "HTTP in the clear goes to port 80 only; use https://.";
  if (reason != Reason::PortNotAllowed) return "";
  if (std::holds_alternative<UseGit>(operation)) {
    return "git goes to port 443 of a host only; use the URL without a port.";
  }
  const auto* http = std::get_if<UseHttp>(&operation);
  const bool clear = http != nullptr && http->scheme == Scheme::Https && http->port == kHttpPort;
  return clear ? "Port 80 is HTTP in the clear; use http://, or another port." : "";
}

// For people a repository's spelling says more than decide()'s cheap measure.
std::optional<RuleRef> closest_to(const Grant& grant, const Operation& operation, const Decision& decision) {
  if (const auto* git = std::get_if<UseGit>(&operation)) {
    if (const auto nearest = nearest_by_repo(grant, git->route.repo)) return nearest;
  }
  // Of another port of the host a rule of its kind says more than its git.
  if (const auto* connect = std::get_if<Connect>(&operation);
      connect != nullptr && connect->port != kHttpsPort) {
    for (const std::size_t i : grant.tcp.naming(connect->host)) return RuleRef{RuleRef::Kind::Tcp, i};
  }
  return decision.closest ? decision.closest : nearest_by_host(grant, host_of(operation));
}

// A rule's credential is offered only where it already serves the host.
std::string credential_for(const Grant& grant, const HostName& host, std::optional<RuleRef> rule) {
  if (!rule || rule->kind != RuleRef::Kind::Git) return "";
  const GitRule& git = grant.git.at(rule->index);
  return git.repo.host() == host ? git.credential : "";
}

// What to do about a refusal.
void advise(const Grant& grant, const Operation& operation, const Decision& decision,
            Explanation& explanation) {
  const HostName& host = host_of(operation);
  if (decision.reason == Reason::DeniedByRule) {
    explanation.advice = "Only a change of that rule allows it.";
    return;
  }
  explanation.advice = no_rule_helps(operation, decision.reason);
  if (!explanation.advice.empty()) return;
  if (decision.reason == Reason::PushNotGranted && grant.git.at(decision.rule->index).repo.wildcards() == 0) {
    explanation.advice = "Change access to \"push\" at " + source_of(grant, *decision.rule).str() + ".";
    return;
  }
  const auto closest = decision.rule ? decision.rule : closest_to(grant, operation, decision);
  if (!decision.rule && closest) explanation.closest = explained(grant, *closest, host);
  explanation.add = line_to_add(operation, credential_for(grant, host, closest));
}

Explanation judge(const Grant& grant, const Operation& operation) {
  const Decision decision = decide(grant, operation);
  Explanation explanation = refused(decision.reason, described(operation));
  explanation.allowed = decision.allowed();
  if (decision.rule) explanation.rule = explained(grant, *decision.rule, host_of(operation));
  if (!explanation.allowed) {
    advise(grant, operation, decision, explanation);
  } else if (std::holds_alternative<Connect>(operation)) {
    explanation.sentence = what_is_judged(decision.carriage);
  }
  return explanation;
}

// ---- URLs ----

std::string url_text(const UrlParts& parts) {
  return escaped(parts.authority) + escaped(parts.target, kMaxTargetBytes);
}

Explanation unreadable_host(const UrlParts& parts, const Error& error) {
  const bool address = error.reason == Reason::IpLiteral;
  return refused(error.reason, url_text(parts),
                 address
                     ? "Ask for the host by its name; an operator can pin a name to an address with address "
                       "= \"IP\" under [host.\"NAME\"]."
                     : "The host cannot be read: " + error.detail + ".");
}

// What is wrong with the URL itself matters only where the host may be reached at all.
Explanation unusable_target(const Grant& grant, const Authority& authority, const UrlParts& parts,
                            const Error& error, std::string advice) {
  Explanation at_host = judge(grant, Connect{authority.host, authority.port});
  at_host.asked = url_text(parts);
  if (!at_host.allowed) return at_host;
  return refused(error.reason, at_host.asked, std::move(advice));
}

bool is_secure(UrlScheme scheme) {
  return scheme != UrlScheme::Http && scheme != UrlScheme::Ws;
}

std::string request_target(const UrlParts& parts) {
  return (parts.target.starts_with('/') ? "" : "/") + std::string(parts.target);
}

Explanation explain_request(const Grant& grant, const Authority& authority, const UrlParts& parts,
                            Method method) {
  auto path = HttpPath::parse(request_target(parts));
  if (!path) {
    return unusable_target(grant, authority, parts, path.error(),
                           "Nobody may ask for it: " + path.error().detail + ".");
  }
  const bool websocket = parts.scheme == UrlScheme::Wss || parts.scheme == UrlScheme::Ws;
  return judge(grant, UseHttp{is_secure(parts.scheme) ? Scheme::Https : Scheme::Http, authority.host,
                              authority.port, websocket ? Method::Get : method, *std::move(path), websocket});
}

// The path as a git request: an endpoint of git's as it stands, or a repository, which git would fetch from.
Result<GitRoute> route_of(const HostName& host, HostKind kind, std::string_view target) {
  for (const std::string_view method : {"GET", "POST"}) {
    Result<GitRoute> route = parse_git_route(host, kind, method, target);
    const bool final = route.has_value() || route.error().reason == Reason::LfsNotGranted ||
                       route.error().reason == Reason::DumbHttp;
    if (final) return route;
  }
  if (target.ends_with('/')) target.remove_suffix(1);  // as git does with a remote's URL
  return parse_git_route(host, kind, "GET", std::string(target) + "/info/refs?service=git-upload-pack");
}

Explanation explain_git(const Grant& grant, const Authority& authority, const UrlParts& parts, GitRoute route,
                        const Asked& asked) {
  const bool push = asked.service == GitService::ReceivePack;
  if (push) route.service = GitService::ReceivePack;
  const HostName& host = authority.host;
  Explanation as_git = judge(grant, UseGit{std::move(route), authority.port});
  const auto path = HttpPath::parse(request_target(parts));
  if (push || as_git.allowed || !path || path->is_git()) return as_git;
  // A repository's page has the same URL.
  if (grant.allow.names(host)) return explain_request(grant, authority, parts, Method::Get);
  if (as_git.advice.empty() && !grant.git.names(host) && well_known_kind(host) == HostKind::Generic) {
    as_git.advice = "This was read as a git repository; --method GET asks for the page.";
  }
  return as_git;
}

Explanation explain_https(const Grant& grant, const UrlParts& parts, const Asked& asked) {
  const Result<Authority> authority = parse_authority(parts.authority, kHttpsPort);
  if (!authority) return unreadable_host(parts, authority.error());
  const HostName& host = authority->host;
  const auto path = HttpPath::parse(request_target(parts));
  const bool git_url = path && path->is_git();
  const bool request = asked.method || parts.scheme == UrlScheme::Wss;
  if (request && !git_url) {
    return explain_request(grant, *authority, parts, asked.method.value_or(Method::Get));
  }
  // With a query it is an endpoint, and no repository of such a name.
  const bool endpoint = git_url && !path->query().empty();
  Result<GitRoute> route = endpoint ? parse_git_route(host, grant.kind_of(host), "GET", parts.target)
                                    : route_of(host, grant.kind_of(host), parts.target);
  if (route) return explain_git(grant, *authority, parts, *std::move(route), asked);
  const Reason reason = route.error().reason;
  const bool of_git =
      git_url || asked.service ||
      ((reason == Reason::LfsNotGranted || reason == Reason::DumbHttp) && !grant.allow.names(host));
  if (!of_git) return explain_request(grant, *authority, parts, Method::Get);
  // As the gateway says it: not that only git is allowed.
  Error error = std::move(route).error();
  if (error.reason == Reason::NotGit && grant.allow.names(host)) error.reason = Reason::RepoNotGranted;
  return unusable_target(grant, *authority, parts, error, "Read as a git URL: " + error.detail + ".");
}

std::string https_url(const UrlParts& parts) {
  const std::string_view host = parts.authority.substr(0, parts.authority.find(':'));
  return "https://" + escaped(host) + escaped(request_target(parts), kMaxTargetBytes);
}

Explanation explain_http(const Grant& grant, const UrlParts& parts, const Asked& asked) {
  const Result<Authority> authority = parse_authority(parts.authority, kHttpPort);
  if (!authority) return unreadable_host(parts, authority.error());
  Explanation explanation = explain_request(grant, *authority, parts, asked.method.value_or(Method::Get));
  if (explanation.allowed) return explanation;
  const std::string url = https_url(parts);
  if (explain_https(grant, take_apart(url), asked).allowed) {
    explanation.advice = "Use " + url + " instead, which is allowed.";
    explanation.add.clear();
  }
  return explanation;
}

// git's own protocols: a [[tcp]] rule may let a connection through; if none does, what https:// would get.
Explanation explain_git_protocol(const Grant& grant, const UrlParts& parts, const Asked& asked) {
  const bool ssh = parts.scheme == UrlScheme::Ssh;
  const Result<Authority> authority = parse_authority(parts.authority, ssh ? kSshPort : kGitPort);
  if (!authority) return unreadable_host(parts, authority.error());
  const Explanation connection = judge(grant, Connect{authority->host, authority->port});
  if (connection.allowed) return connection;
  const std::string url = https_url(parts);
  const Explanation as_https = explain_https(grant, take_apart(url), asked);
  Explanation explanation = as_https;
  explanation.allowed = false;
  explanation.reason = connection.reason;
  explanation.sentence = std::string(ssh ? "SSH leaves" : "The git:// protocol leaves") +
                         " the sandbox by a [[tcp]] rule only; git goes over https://.";
  explanation.advice = "Use " + url + " instead, which is " +
                       (as_https.allowed ? "allowed." : "refused as well: " + as_https.sentence);
  return explanation;
}

Explanation explain_connection(const Grant& grant, const UrlParts& parts) {
  const Result<Authority> authority = parse_authority(parts.authority, kHttpsPort);
  if (!authority) return unreadable_host(parts, authority.error());
  return judge(grant, Connect{authority->host, authority->port});
}

// What a [[tcp]] rule names. Nothing is asked for but the connection.
Explanation explain_tcp(const Grant& grant, const UrlParts& parts, const Asked& asked) {
  const bool bare = parts.target.empty() && parts.authority.find(':') != std::string_view::npos;
  if (!bare || asked.service || asked.method) {
    return refused(Reason::BadRequest, "tcp://" + url_text(parts),
                   "Ask for the connection alone: tcp://HOST:PORT.");
  }
  return explain_connection(grant, parts);
}

Explanation explain(const Grant& grant, std::string_view url, const Asked& asked) {
  const UrlParts parts = take_apart(url);
  switch (parts.scheme) {
    case UrlScheme::None:
      if (parts.target.empty() && !asked.service && !asked.method) return explain_connection(grant, parts);
      return explain_https(grant, parts, asked);
    case UrlScheme::Https:
    case UrlScheme::Wss:
      return explain_https(grant, parts, asked);
    case UrlScheme::Http:
    case UrlScheme::Ws:
      return explain_http(grant, parts, asked);
    case UrlScheme::Ssh:
    case UrlScheme::Git:
      return explain_git_protocol(grant, parts, asked);
    case UrlScheme::Tcp:
      return explain_tcp(grant, parts, asked);
    case UrlScheme::Other:
      break;
  }
  return refused(Reason::BadRequest, escaped(url.substr(0, url.find("://"))) + "://...",
                 "Ask with a URL that begins with https:// or http://, or about tcp://HOST:PORT.");
}

std::string indented(std::string_view text) {
  std::string result;
  for (const std::string_view line : split(text, '\n')) result += "    " + std::string(line) + "\n";
  return result;
}

}  // namespace

std::string Explanation::text() const {
  std::string text =
      allowed ? "allowed: " + asked + "\n" : "refused: " + asked + " (" + std::string(code(reason)) + ")\n";
  if (!sentence.empty()) text += "  " + sentence + "\n";
  if (rule) text += "  rule: " + rule->str() + "\n";
  if (closest) text += "  closest rule: " + closest->str() + "\n";
  if (!advice.empty()) text += "  " + advice + "\n";
  if (!add.empty()) text += "  To allow it, add to the policy:\n\n" + indented(add) + "\n";
  return text;
}

Explanation explain_url(const Grant& grant, std::string_view url, std::optional<Method> method) {
  return explain(grant, url, {std::nullopt, method});
}

Explanation explain_push(const Grant& grant, std::string_view repo) {
  return explain(grant, repo, {GitService::ReceivePack, std::nullopt});
}

}  // namespace sallyport::policy
