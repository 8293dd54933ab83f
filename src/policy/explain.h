// What `sallyport policy explain` says: is this allowed, by which rule, which rule came closest, what to add.
// Pure, and decided by decide() alone; the CLI prints text() or makes JSON of the fields.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/reason.h"
#include "policy/decide.h"
#include "policy/grant.h"

namespace sallyport::policy {

struct ExplainedRule {
  std::string repo;  // the pattern
  Access access;
  std::string credential;  // empty: anonymous
  std::string source;      // "sallyport.toml:3"

  std::string str() const;
};

struct Explanation {
  bool allowed = false;
  Reason reason = Reason::PolicyEmpty;  // None when allowed
  std::string asked;     // "fetch from github.com/acme/widget"; no user name or password of a URL
  std::string sentence;  // why, for people
  std::optional<ExplainedRule> rule;  // the one that decided, also when it denied
  std::optional<ExplainedRule> closest;
  std::string advice;  // what to do, in words; may be empty
  std::string add;     // the rule to add, as TOML; empty when none would help

  // Several lines, the last with its newline.
  std::string text() const;
};

// `url` is what one gives to git clone (https://host/owner/name[.git], also ssh://, git@host:path, git://,
// http://, or host/owner/name), or any URL that a program in the sandbox asks for.
Explanation explain_url(const Grant& grant, std::string_view url);

// A push to "host/owner/name", or to a URL as above.
Explanation explain_push(const Grant& grant, std::string_view repo);

}  // namespace sallyport::policy
