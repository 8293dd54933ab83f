// What `sallyport policy explain` says: is this allowed, by which rule, which rule came closest, what to add.
// Pure, and decided by decide() alone; the CLI prints text() or makes JSON of the fields.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/reason.h"
#include "policy/explained_rule.h"
#include "policy/grant.h"

namespace sallyport::policy {

struct Explanation {
  bool allowed = false;
  Reason reason = Reason::PolicyEmpty;  // None when allowed
  std::string asked;     // "fetch from github.com/acme/widget"; no user name or password of a URL
  std::string sentence;  // why, for people; of a connection that is allowed, what is judged on it
  std::optional<ExplainedRule> rule;  // the one that decided, also when it denied
  std::optional<ExplainedRule> closest;
  std::string advice;  // what to do, in words; may be empty
  std::string add;     // the rule to add, as TOML; empty when none would help

  // Several lines, the last with its newline.
  std::string text() const;
};

// Judged as it would be if a program in the sandbox asked for it:
// - "host" and "host:port": a connection;
// - a repository, as one gives it to git clone (https://host/owner/name[.git], host/owner/name), and the URLs
//   that git makes of it: a git request, unless `method` is given or the host's [[allow]] rules are meant;
// - any other http://, https://, ws:// or wss:// URL: a request, by default a GET;
// - ssh://, git@host:path and git://: a connection, and what https:// would get instead.
Explanation explain_url(const Grant& grant, std::string_view url,
                        std::optional<Method> method = std::nullopt);

// A push to "host/owner/name", or to a URL as above.
Explanation explain_push(const Grant& grant, std::string_view repo);

}  // namespace sallyport::policy
