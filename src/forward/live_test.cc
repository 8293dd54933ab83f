#include "forward/live.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "policy/git_route.h"

namespace sallyport::forward {
namespace {

using policy::Carriage;

policy::HostName host(std::string_view name) {
  return *policy::HostName::parse(name);
}
policy::AllowRule allow(std::string_view name) {
  return {.hosts = {*policy::HostPattern::parse(name)},
          .ports = {policy::kHttpsPort, policy::kHttpPort},
          .methods = policy::Methods{policy::Method::Get, policy::Method::Post}};
}
policy::GitRule git(std::string_view repo, policy::Access access, std::string credential) {
  return {*policy::RepoPattern::parse(repo, policy::HostKind::Generic), access, std::move(credential), {}};
}

// Everything that the judged things of this page ask for.
policy::Grant before() {
  policy::Grant grant;
  grant.allow.push_back(allow("web.test"));
  auto spliced = allow("pinned.test");
  spliced.tls = policy::TlsMode::Splice;
  grant.allow.push_back(std::move(spliced));
  grant.tcp.push_back({host("db.test"), 5432, {}});
  grant.git.push_back(git("forge.test/acme/*", policy::Access::Push, "forge"));
  grant.git.push_back(git("open.test/*/*", policy::Access::Fetch, ""));
  return grant;
}

Judged tunnel(std::string_view name, std::uint16_t port, Carriage carriage) {
  return {.operation = policy::Connect{host(name), port}, .carriage = carriage};
}
Judged request(std::uint64_t body_bytes = 0) {
  return {.operation = policy::UseHttp{.scheme = policy::Scheme::Https,
                                       .host = host("web.test"),
                                       .port = 443,
                                       .method = policy::Method::Post,
                                       .path = *policy::HttpPath::parse("/up")},
          .body_bytes = body_bytes};
}
Judged git_request(std::string_view name, std::size_t rule, std::string credential) {
  auto route =
      policy::parse_git_route(host(name), policy::HostKind::Generic, "POST", "/acme/widget/git-upload-pack");
  return {
      .operation = policy::UseGit{*std::move(route), 443}, .rule = rule, .credential = std::move(credential)};
}

// Whether it may go on under `after`.
bool goes_on(const Judged& judged, const policy::Grant& after) {
  Live live;
  Live::Entry entry(live, judged);
  int ended = 0;
  entry.end_by([&] { ++ended; });
  live.judge_again(before(), after);
  live.judge_again(after, after);
  EXPECT_EQ(ended, entry.revoked() ? 1 : 0);
  return !entry.revoked();
}

TEST(Live, WhatIsStillAllowedInTheSameWayGoesOn) {
  policy::Grant after = before();
  after.allow.push_back(allow("more.test"));
  after.git.push_back(git("more.test/a/b", policy::Access::Fetch, ""));
  for (const Judged& judged :
       {request(7), tunnel("pinned.test", 443, Carriage::Splice), tunnel("db.test", 5432, Carriage::Raw),
        tunnel("web.test", 443, Carriage::Inspect), git_request("forge.test", 0, "forge"),
        git_request("open.test", 1, "")}) {
    EXPECT_TRUE(goes_on(judged, after)) << judged.operation.index();
    EXPECT_FALSE(goes_on(judged, {})) << judged.operation.index();
  }
}

TEST(Live, ATunnelEndsWhenItsHostIsReachedOrCarriedInAnotherWay) {
  policy::Grant inspected = before();
  inspected.allow = {allow("pinned.test")};
  EXPECT_FALSE(goes_on(tunnel("pinned.test", 443, Carriage::Splice), inspected));
  policy::Grant elsewhere = before();
  elsewhere.hosts[host("db.test")].address = policy::parse_pinned_address("192.0.2.1");
  EXPECT_FALSE(goes_on(tunnel("db.test", 5432, Carriage::Raw), elsewhere));
  policy::Grant denied = before();
  denied.deny.push_back({.hosts = {*policy::HostPattern::parse("pinned.test")}, .paths = {}});
  EXPECT_FALSE(goes_on(tunnel("pinned.test", 443, Carriage::Splice), denied));
}

TEST(Live, ARequestEndsWhenItsBodyMayNotBeSoLargeAnyMore) {
  policy::Grant after = before();
  auto smaller = allow("web.test");
  smaller.max_body = 10;
  after.allow = {smaller};
  EXPECT_TRUE(goes_on(request(10), after));
  EXPECT_FALSE(goes_on(request(11), after));
}

TEST(Live, AGitRequestEndsWhenItsCredentialIsAnotherOrItsRuleHasMoved) {
  policy::Grant another = before();
  another.git = {git("forge.test/acme/*", policy::Access::Push, "other")};
  EXPECT_FALSE(goes_on(git_request("forge.test", 0, "forge"), another));
  policy::Grant moved = before();
  moved.git = {git("open.test/*/*", policy::Access::Fetch, ""),
               git("forge.test/acme/*", policy::Access::Push, "forge")};
  EXPECT_FALSE(goes_on(git_request("forge.test", 0, "forge"), moved));
  EXPECT_TRUE(goes_on(git_request("open.test", 1, ""), moved)) << "no vault goes by its place";
}

TEST(Live, NothingHoldsAPolicyForEverButAWayInHoldsNone) {
  const policy::Grant grant = before();
  Live live;
  Live::Entry entry(live, request());
  Live::Entry way_in(live, tunnel("web.test", 443, Carriage::Inspect));
  for (std::uint32_t i = 0; i < kMaxPoliciesOutlived; ++i) live.judge_again(grant, grant);
  EXPECT_FALSE(entry.revoked());
  live.judge_again(grant, grant);
  EXPECT_TRUE(entry.revoked());
  EXPECT_FALSE(way_in.revoked());
}

TEST(Live, ForgetsWhatHasEnded) {
  Live live;
  {
    Live::Entry first(live, request());
    Live::Entry second(live, request());
    second.end_by({});
    live.judge_again(before(), {});
    EXPECT_TRUE(first.revoked() && second.revoked()) << "with nothing to call";
    EXPECT_EQ(live.size(), 2U);
  }
  EXPECT_EQ(live.size(), 0U);
}

}  // namespace
}  // namespace sallyport::forward
