// Rules in words, and the one that somebody may have meant. For messages to people only.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "policy/decide.h"
#include "policy/grant.h"

namespace sallyport::policy {

struct ExplainedRule {
  RuleRef::Kind kind;
  std::string says;    // "github.com/acme/widget (push, credential "github")"
  std::string source;  // "sallyport.toml:3"

  std::string str() const;  // "sallyport.toml:3: [[git]] github.com/..."
};

// As seen by somebody who asked for `host`: of a rule with many hosts, the one that matches it.
ExplainedRule explained(const Grant& grant, RuleRef rule, const HostName& host);

// The rule whose host is spelled most like `host`; no [[deny]].
std::optional<RuleRef> nearest_by_host(const Grant& grant, const HostName& host);
// The [[git]] rule whose pattern is spelled most like the repository.
std::optional<RuleRef> nearest_by_repo(const Grant& grant, const RepoId& repo);

}  // namespace sallyport::policy
