// For tests: a policy of [[allow]] rules, and the ways to them.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "policy/grant.h"

namespace sallyport::gate::testing {

inline policy::AllowRule allow_rule(std::string_view host, policy::Methods methods,
                                    const std::vector<std::string>& paths = {}) {
  policy::AllowRule rule{.hosts = {*policy::HostPattern::parse(host)},
                         .ports = {policy::kHttpsPort, policy::kHttpPort},
                         .methods = methods};
  for (const std::string& path : paths) rule.paths.push_back(*policy::PathPattern::parse(path));
  return rule;
}

// The policy that tests/data/front/http.tsv describes.
inline policy::Grant egress_grant() {
  using enum policy::Method;
  policy::Grant grant;
  grant.allow.push_back(allow_rule("forge.test", {Get, Head, Delete},
                                   {"/a", "/v1/**", "/dns-query", "/resolve", "/.well-known/**"}));
  auto upload = allow_rule("forge.test", {Post, Put}, {"/a", "/up"});
  upload.max_body = 100;
  grant.allow.push_back(std::move(upload));
  auto chat = allow_rule("forge.test", {Get}, {"/chat"});
  chat.websocket = true;
  grant.allow.push_back(std::move(chat));
  grant.deny.push_back({.hosts = {*policy::HostPattern::parse("forge.test")},
                        .paths = {*policy::PathPattern::parse("/v1/secret")}});
  grant.allow.push_back(allow_rule("keyed.test", {Get, Post}));
  grant.git.push_back({*policy::RepoPattern::parse("keyed.test/o/r", policy::HostKind::Generic),
                       policy::Access::Fetch,
                       "key",
                       {}});
  return grant;
}

}  // namespace sallyport::gate::testing
