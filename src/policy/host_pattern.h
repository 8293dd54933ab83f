// Which hosts a rule means: one name, or every name below one. docs/policy.md holds the matching rules in
// words.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "policy/host.h"

namespace sallyport::policy {

class HostPattern {
 public:
  // "registry.example" is that name alone. "*.cdn.example" is every name below it at any depth, never
  // "cdn.example" itself. A '*' may stand nowhere else. Hosts with a special_name() are refused.
  // Error::detail is a sentence for the person who wrote the rule.
  static Result<HostPattern> parse(std::string_view text);
  static HostPattern exactly(HostName host) { return {std::move(host), false}; }

  bool matches(const HostName& host) const;
  bool is_wildcard() const { return wildcard_; }
  // The name, or the one below which everything is meant.
  const HostName& base() const { return base_; }
  std::string str() const;
  // Every host that `other` matches is matched by this one too.
  bool covers(const HostPattern& other) const;

  auto operator<=>(const HostPattern&) const = default;

 private:
  HostPattern(HostName base, bool wildcard) : base_(std::move(base)), wildcard_(wildcard) {}

  HostName base_;
  bool wildcard_;
};

}  // namespace sallyport::policy
