#include "policy/explain.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/text.h"
#include "policy/similar.h"

namespace sallyport::policy {
namespace {

enum class UrlScheme : std::uint8_t { Https, Http, Ssh, Git, Other };

// A URL taken apart, without its user name and password: those are never shown.
struct Parts {
  UrlScheme scheme = UrlScheme::Https;
  std::string_view authority;
  std::string_view target;  // path and query; may be empty
};

UrlScheme scheme_of(std::string_view text) {
  if (equals_ignoring_case(text, "https")) return UrlScheme::Https;
  if (equals_ignoring_case(text, "http")) return UrlScheme::Http;
  if (equals_ignoring_case(text, "ssh") || equals_ignoring_case(text, "git+ssh")) return UrlScheme::Ssh;
  if (equals_ignoring_case(text, "git")) return UrlScheme::Git;
  return UrlScheme::Other;
}

std::string_view without_userinfo(std::string_view authority) {
  const std::size_t at = authority.rfind('@');
  return at == std::string_view::npos ? authority : authority.substr(at + 1);
}

Parts take_apart(std::string_view url) {
  Parts parts;
  std::string_view rest = url;
  if (const std::size_t scheme_end = url.find("://"); scheme_end != std::string_view::npos) {
    parts.scheme = scheme_of(url.substr(0, scheme_end));
    rest = url.substr(scheme_end + 3);
  } else if (const std::size_t colon = url.find(':');
             colon != std::string_view::npos && url.find('@') < colon && url.find('/') > colon) {
    // git's short form for SSH: user@host:path.
    return {UrlScheme::Ssh, without_userinfo(url.substr(0, colon)), url.substr(colon + 1)};
  }
  const std::size_t slash = rest.find_first_of("/?#");
  parts.authority = without_userinfo(rest.substr(0, slash));
  if (slash != std::string_view::npos) parts.target = rest.substr(slash);
  return parts;
}

ExplainedRule describe(const GitRule& rule) {
  return {rule.repo.str(), rule.access, rule.credential, rule.source.str()};
}

std::string described(const Operation& operation) {
  struct Describe {
    std::string operator()(const ResolveName& asked) const { return "the host " + asked.host.str(); }
    std::string operator()(const Connect& asked) const {
      const std::string port = asked.port == kHttpsPort ? "" : ":" + std::to_string(asked.port);
      return "the host " + asked.host.str() + port;
    }
    std::string operator()(const UseGit& asked) const {
      const bool push = asked.route.service == GitService::ReceivePack;
      return (push ? "push to " : "fetch from ") + asked.route.repo.str();
    }
    std::string operator()(const UseHttp& asked) const {
      return std::string(name(asked.method)) + " " + asked.host.str() + escaped(asked.path.target());
    }
  };
  return std::visit(Describe{}, operation);
}

Explanation refused(Reason reason, std::string asked, std::string advice = "") {
  Explanation explanation;
  explanation.reason = reason;
  explanation.asked = std::move(asked);
  explanation.sentence = info(reason).sentence;
  explanation.advice = std::move(advice);
  return explanation;
}

const GitRule* nearest_rule(const Grant& grant, std::string_view wanted) {
  const std::string name = lowered(wanted.substr(0, kMaxTargetBytes));
  const auto distance = [&](const GitRule& rule) { return edit_distance(lowered(rule.repo.str()), name); };
  const auto best = std::ranges::min_element(grant.git, {}, distance);
  return best == grant.git.end() ? nullptr : &*best;
}

const GitRule* git_rule_of(const Grant& grant, const Decision& decision) {
  const bool git = decision.rule && decision.rule->kind == RuleRef::Kind::Git;
  return git ? &grant.git[decision.rule->index] : nullptr;
}

struct Wanted {
  Operation operation;
  HostName host;
  std::string name;  // to look for the nearest rule by
};

// What to do about a refusal. The nearest rule's credential is offered only where it already serves the host.
void advise(const Grant& grant, const Wanted& wanted, const Decision& decision, Explanation& explanation) {
  if (decision.reason == Reason::PortNotAllowed) {
    explanation.advice = "Only port 443 of a host is open; use the URL without a port.";
    return;
  }
  if (const std::string_view why = special_name(wanted.host); !why.empty()) {
    explanation.advice = "No rule can name this host: its name " + std::string(why) + ".";
    return;
  }
  if (const GitRule* decided = git_rule_of(grant, decision)) {
    const GitRule& rule = *decided;
    if (rule.repo.wildcards() == 0) {
      explanation.advice = "Change access to \"push\" at " + rule.source.str() + ".";
      return;
    }
    explanation.add = line_to_add(wanted.operation, rule.credential);
    return;
  }
  const GitRule* nearest = nearest_rule(grant, wanted.name);
  std::string credential;
  if (nearest != nullptr) {
    explanation.closest = describe(*nearest);
    if (nearest->repo.host() == wanted.host) credential = nearest->credential;
  }
  explanation.add = line_to_add(wanted.operation, credential);
}

Explanation judge(const Grant& grant, const Wanted& wanted) {
  const Decision decision = decide(grant, wanted.operation);
  Explanation explanation = refused(decision.reason, described(wanted.operation));
  explanation.allowed = decision.allowed();
  if (const GitRule* rule = git_rule_of(grant, decision)) explanation.rule = describe(*rule);
  if (!explanation.allowed) advise(grant, wanted, decision, explanation);
  return explanation;
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

Explanation explain_https(const Grant& grant, const Parts& parts, std::optional<GitService> service) {
  const Result<Authority> authority = parse_authority(parts.authority, kHttpsPort);
  if (!authority) {
    const bool address = authority.error().reason == Reason::IpLiteral;
    return refused(
        authority.error().reason, escaped(parts.authority) + escaped(parts.target),
        address ? "Ask for the host by its name; an operator can pin a name to an address with address "
                  "= \"IP\" under [host.\"NAME\"]."
                : "The host cannot be read: " + authority.error().detail + ".");
  }
  const HostName& host = authority->host;
  if (parts.target.empty() || parts.target == "/") {
    Explanation explanation = judge(grant, {Connect{host, authority->port}, host, host.str()});
    if (!explanation.allowed) return explanation;
    return refused(Reason::NotGit, explanation.asked,
                   "Only git is allowed there, in the repositories that rules name.");
  }
  Result<GitRoute> route = route_of(host, grant.kind_of(host), parts.target);
  if (route) {
    if (service) route->service = *service;
    const std::string name = route->repo.str();
    return judge(grant, {UseGit{*std::move(route), authority->port}, host, name});
  }
  // Not a git request. A host that no rule names, or another port, is refused before that is looked at.
  Explanation at_host = judge(grant, {Connect{host, authority->port}, host, host.str()});
  at_host.asked = host.str() + escaped(parts.target);
  if (!at_host.allowed) return at_host;
  return refused(route.error().reason, at_host.asked, "Read as a git URL: " + route.error().detail + ".");
}

std::string plain_https_url(const Parts& parts) {
  const std::string_view host = parts.authority.substr(0, parts.authority.find(':'));
  return "https://" + escaped(host) + (parts.target.starts_with('/') ? "" : "/") + escaped(parts.target);
}

// A scheme that is never let out: say so, and what the https form of it would get.
Explanation explain_other_scheme(const Grant& grant, const Parts& parts, std::optional<GitService> service,
                                 Reason reason, const std::string& what) {
  const std::string url = plain_https_url(parts);
  const Explanation as_https = explain_https(grant, take_apart(url), service);
  Explanation explanation = as_https;
  explanation.allowed = false;
  explanation.reason = reason;
  explanation.sentence = what;
  explanation.advice = "Use " + url + " instead, which is " +
                       (as_https.allowed ? "allowed." : "refused as well: " + as_https.sentence);
  return explanation;
}

Explanation explain(const Grant& grant, std::string_view url, std::optional<GitService> service) {
  const Parts parts = take_apart(url);
  switch (parts.scheme) {
    case UrlScheme::Https:
      return explain_https(grant, parts, service);
    case UrlScheme::Http:
      return explain_other_scheme(grant, parts, service, Reason::PlainHttp,
                                  std::string(info(Reason::PlainHttp).sentence));
    case UrlScheme::Ssh:
      return explain_other_scheme(grant, parts, service, Reason::PortNotAllowed,
                                  "SSH does not leave the sandbox; git goes over https:// only.");
    case UrlScheme::Git:
      return explain_other_scheme(
          grant, parts, service, Reason::PortNotAllowed,
          "The git:// protocol does not leave the sandbox; git goes over https:// only.");
    case UrlScheme::Other:
      break;
  }
  return refused(Reason::BadRequest, escaped(url.substr(0, url.find("://"))) + "://...",
                 "Only https:// leaves the sandbox.");
}

std::string indented(std::string_view text) {
  std::string result;
  for (const std::string_view line : split(text, '\n')) result += "    " + std::string(line) + "\n";
  return result;
}

}  // namespace

std::string ExplainedRule::str() const {
  const std::string with = credential.empty() ? "anonymous" : "credential \"" + credential + "\"";
  return source + ": " + repo + " (" + std::string(name(access)) + ", " + with + ")";
}

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

Explanation explain_url(const Grant& grant, std::string_view url) {
  return explain(grant, url, std::nullopt);
}

Explanation explain_push(const Grant& grant, std::string_view repo) {
  return explain(grant, repo, GitService::ReceivePack);
}

}  // namespace sallyport::policy
