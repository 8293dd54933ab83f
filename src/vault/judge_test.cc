#include "vault/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace sallyport::vault {
namespace {

using testing::HasSubstr;

policy::Grant grant() {
  policy::Grant made;
  const auto add = [&](std::string_view pattern, policy::Access access, std::string credential) {
    auto repo = policy::RepoPattern::parse(pattern, policy::HostKind::GitHub).value();
    made.hosts[repo.host()].kind = policy::HostKind::GitHub;
    made.git.push_back({std::move(repo), access, std::move(credential), {"sallyport.toml", 1}});
  };
  add("github.com/acme/widget", policy::Access::Fetch, "github");
  add("github.com/acme/pushed", policy::Access::Push, "github");
  add("github.com/open/*", policy::Access::Fetch, "");
  return made;
}

RequestHead good_head() {
  return {.session = "s1",
          .request_id = "r1",
          .rule = 0,
          .method = "GET",
          .host = "github.com",
          .port = 443,
          .target = "/acme/widget/info/refs?service=git-upload-pack",
          .headers = {},
          .body = upstream::BodyKind::None,
          .body_bytes = 0};
}

TEST(Judge, LetsThroughWhatTheGrantAllowsWithACredential) {
  const auto judged = judge(good_head(), "s1", grant());
  ASSERT_TRUE(judged) << judged.error().detail;
  EXPECT_EQ(judged->credential, "github");
  EXPECT_EQ(judged->request.host.str(), "github.com");
  EXPECT_EQ(judged->request.target, good_head().target);

  RequestHead push = good_head();
  push.rule = 1;
  push.method = "POST";
  push.target = "/acme/pushed/git-receive-pack";
  push.body = upstream::BodyKind::Open;
  EXPECT_TRUE(judge(push, "s1", grant()));
}

TEST(Judge, RefusesWhatAHostileGateTries) {
  using Change = std::function<void(RequestHead&)>;
  struct Case {
    const char* sentence;
    Change change;
    const char* says;
  };
  const Case cases[] = {
      {"another session", [](RequestHead& h) { h.session = "s2"; }, "another session"},
      {"a longer session", [](RequestHead& h) { h.session = "s1x"; }, "another session"},
      {"another host", [](RequestHead& h) { h.host = "evil.example"; }, "host_not_allowed"},
      {"an address", [](RequestHead& h) { h.host = "127.0.0.1"; }, "canonical"},
      {"a host with a trailing dot", [](RequestHead& h) { h.host = "github.com."; }, "canonical"},
      {"a host in upper case", [](RequestHead& h) { h.host = "GitHub.com"; }, "canonical"},
      {"another port", [](RequestHead& h) { h.port = 8443; }, "port_not_allowed"},
      {"another repository",
       [](RequestHead& h) { h.target = "/acme/other/info/refs?service=git-upload-pack"; },
       "repo_not_granted"},
      {"a push on a fetch rule",
       [](RequestHead& h) { h.target = "/acme/widget/info/refs?service=git-receive-pack"; },
       "push_not_granted"},
      {"a push's POST on a fetch rule",
       [](RequestHead& h) {
         h.method = "POST";
         h.target = "/acme/widget/git-receive-pack";
       },
       "push_not_granted"},
      {"another rule's number", [](RequestHead& h) { h.rule = 1; }, "another rule"},
      {"a rule beyond the last", [](RequestHead& h) { h.rule = 0xffffffff; }, "another rule"},
      {"a rule without a credential",
       [](RequestHead& h) {
         h.rule = 2;
         h.target = "/open/thing/info/refs?service=git-upload-pack";
       },
       "no credential"},
      {"an API path", [](RequestHead& h) { h.target = "/user/repos"; }, "not a git request"},
      {"a path with dots",
       [](RequestHead& h) { h.target = "/acme/other/../widget/info/refs?service=git-upload-pack"; },
       "not a git request"},
      {"a percent-encoded path",
       [](RequestHead& h) { h.target = "/acme/w%69dget/info/refs?service=git-upload-pack"; },
       "not a git request"},
      {"a second service", [](RequestHead& h) { h.target += "&service=git-receive-pack"; },
       "not a git request"},
      {"an absolute target", [](RequestHead& h) { h.target = "https://github.com" + h.target; },
       "not a git request"},
      {"another method", [](RequestHead& h) { h.method = "DELETE"; }, "not a git request"},
      {"a method in lower case", [](RequestHead& h) { h.method = "get"; }, "not a git request"},
      {"an advertisement with a body", [](RequestHead& h) { h.body = upstream::BodyKind::Open; },
       "with a body"},
  };
  for (const Case& c : cases) {
    RequestHead head = good_head();
    c.change(head);
    const auto judged = judge(head, "s1", grant());
    ASSERT_FALSE(judged) << c.sentence;
    EXPECT_EQ(judged.error().reason, Reason::VaultRefused) << c.sentence;
    EXPECT_THAT(judged.error().detail, HasSubstr(c.says)) << c.sentence;
  }
}

TEST(Judge, AnEmptyGrantAllowsNothing) {
  EXPECT_FALSE(judge(good_head(), "s1", {}));
}

}  // namespace
}  // namespace sallyport::vault
