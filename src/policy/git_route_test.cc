#include "policy/git_route.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sallyport::policy {
namespace {

using namespace std::string_literals;

Result<GitRoute> parse(std::string_view method, std::string_view target, HostKind kind = HostKind::GitHub) {
  return parse_git_route(*HostName::parse("h.test"), kind, method, target);
}

TEST(GitRoute, ReadsTheFourEndpoints) {
  struct Case {
    const char* method;
    const char* target;
    GitService service;
    GitEndpoint endpoint;
    bool dot_git;
  };
  for (const Case& c : std::vector<Case>{
           {"GET", "/acme/widget/info/refs?service=git-upload-pack", GitService::UploadPack,
            GitEndpoint::Advertisement, false},
           {"GET", "/acme/widget.git/info/refs?service=git-receive-pack", GitService::ReceivePack,
            GitEndpoint::Advertisement, true},
           {"POST", "/acme/widget.git/git-upload-pack", GitService::UploadPack, GitEndpoint::Rpc, true},
           {"POST", "/acme/widget/git-receive-pack", GitService::ReceivePack, GitEndpoint::Rpc, false}}) {
    const Result<GitRoute> route = parse(c.method, c.target);
    ASSERT_TRUE(route) << c.target << ": " << route.error().detail;
    EXPECT_EQ(route->repo.str(), "h.test/acme/widget");
    EXPECT_EQ(route->service, c.service);
    EXPECT_EQ(route->endpoint, c.endpoint);
    EXPECT_EQ(route->dot_git, c.dot_git);
    EXPECT_EQ(route->method(), c.method);
    EXPECT_EQ(route->target(), c.target);
  }
}

TEST(GitRoute, KeepsTheClientsSpellingOfCase) {
  const Result<GitRoute> route = parse("POST", "/Acme/Widget.git/git-upload-pack");
  ASSERT_TRUE(route);
  EXPECT_EQ(route->repo.str(), "h.test/Acme/Widget");
  EXPECT_EQ(route->target(), "/Acme/Widget.git/git-upload-pack");
}

TEST(GitRoute, NestsOnlyWhereTheHostDoes) {
  const char* target = "/group/team/widget.git/git-upload-pack";
  ASSERT_TRUE(parse("POST", target, HostKind::GitLab));
  EXPECT_EQ(parse("POST", target, HostKind::GitLab)->repo.str(), "h.test/group/team/widget");
  EXPECT_EQ(code(parse("POST", target, HostKind::GitHub).error().reason), "not_git");
  EXPECT_EQ(code(parse("POST", target, HostKind::Generic).error().reason), "not_git");
}

TEST(GitRoute, RefusesWithTheReason) {
  struct Case {
    const char* method;
    std::string target;
    const char* code;
  };
  const std::string advertisement = "/info/refs?service=git-upload-pack";
  for (const Case& c : std::vector<Case>{
           // LFS, in every form.
           {"POST", "/o/r.git/info/lfs/objects/batch", "lfs_not_granted"},
           {"POST", "/o/r.git/info/lfs/locks/verify", "lfs_not_granted"},
           {"GET", "/o/r/info/lfs/locks?path=x", "lfs_not_granted"},
           {"PUT", "/o/r/info/lfs/objects/abc", "lfs_not_granted"},
           {"GET", "/o/r/info/lfs", "lfs_not_granted"},
           // The dumb protocol.
           {"GET", "/o/r.git/HEAD", "dumb_http"},
           {"GET", "/o/r/info/refs", "dumb_http"},
           {"GET", "/o/r.git/objects/info/packs", "dumb_http"},
           {"GET", "/o/r.git/objects/ab/cdef", "dumb_http"},
           // The wrong method.
           {"POST", "/o/r" + advertisement, "method_not_allowed"},
           {"HEAD", "/o/r" + advertisement, "method_not_allowed"},
           {"get", "/o/r" + advertisement, "method_not_allowed"},
           {"GET", "/o/r/git-upload-pack", "method_not_allowed"},
           {"PUT", "/o/r/git-receive-pack", "method_not_allowed"},
           // The query: exactly one, exactly this.
           {"GET", "/o/r/info/refs?", "bad_request"},
           {"GET", "/o/r/info/refs?service=", "bad_request"},
           {"GET", "/o/r/info/refs?service=git-upload-pack&service=git-receive-pack", "bad_request"},
           {"GET", "/o/r/info/refs?service=git-receive-pack&x=1", "bad_request"},
           {"GET", "/o/r/info/refs?x=1&service=git-receive-pack", "bad_request"},
           {"GET", "/o/r/info/refs?service=git-receive-pack%00", "bad_request"},
           {"GET", "/o/r/info/refs?service=git%2dreceive-pack", "bad_request"},
           {"GET", "/o/r/info/refs?service=GIT-UPLOAD-PACK", "bad_request"},
           {"GET", "/o/r/info/refs?Service=git-upload-pack", "bad_request"},
           {"GET", "/o/r/info/refs?service=git-upload-pack?x", "bad_request"},
           {"GET", "/o/r/info/refs?service=git-upload-pack#x", "bad_request"},
           {"GET", "/o/r/info/refs?service=upload-pack", "bad_request"},
           {"GET", "/o/r/info/refs?service=git-upload-archive", "not_git"},
           {"POST", "/o/r/git-upload-pack?", "bad_request"},
           {"POST", "/o/r/git-upload-pack?x=1", "bad_request"},
           {"GET", "/o/r?x=1/info/refs&service=git-upload-pack", "not_git"},
           // The path: one reading only.
           {"GET", "/o/r.git/../../x/y.git" + advertisement, "bad_request"},
           {"GET", "/o/./r" + advertisement, "bad_request"},
           {"GET", "/o//r" + advertisement, "bad_request"},
           {"GET", "//o/r" + advertisement, "bad_request"},
           {"GET", "/o/r//info/refs?service=git-upload-pack", "bad_request"},
           {"GET", "/o/r/info/refs/?service=git-upload-pack", "bad_request"},
           {"POST", "/o/r/git-upload-pack/", "bad_request"},
           {"GET", "/o/r.git.git" + advertisement, "bad_request"},
           {"GET", "/o/r.git.git/", "bad_request"},
           {"GET", "/o/r.GIT" + advertisement, "bad_request"},
           {"GET", "/o.git/r" + advertisement, "bad_request"},
           {"GET", "/o/.git" + advertisement, "bad_request"},
           {"GET", "/o/-r" + advertisement, "bad_request"},
           {"GET", "/o%2fr.git" + advertisement, "bad_request"},
           {"GET", "/o/%72" + advertisement, "bad_request"},
           {"GET", "/o/r%2e%2e" + advertisement, "bad_request"},
           {"GET", "/o/r;x" + advertisement, "bad_request"},
           {"GET", "/o/r;/../x" + advertisement, "bad_request"},
           {"GET", "/o\\r" + advertisement, "bad_request"},
           {"GET", "/o/r*" + advertisement, "bad_request"},
           {"GET", "/o/a@b" + advertisement, "bad_request"},
           {"GET", "/o/r\0"s + advertisement, "bad_request"},
           {"GET", "/o/r x" + advertisement, "bad_request"},
           {"GET", "/o/r\t" + advertisement, "bad_request"},
           {"GET", "/o/r\xc3\xa9" + advertisement, "bad_request"},
           {"GET", "o/r" + advertisement, "bad_request"},
           {"GET", "https://h.test/o/r" + advertisement, "bad_request"},
           {"GET", "*", "bad_request"},
           {"GET", "", "bad_request"},
           {"GET", "/" + std::string(kMaxTargetBytes, 'a'), "target_too_long"},
           // What is no git at all.
           {"GET", "/", "not_git"},
           {"GET", "/o/r", "not_git"},
           {"GET", "/o/r/blob/main/README", "not_git"},
           {"POST", "/o/r/git-upload-archive", "not_git"},
           {"GET", "/info/refs?service=git-upload-pack", "not_git"},
           {"GET", "/r" + advertisement, "not_git"},
           {"POST", "/git-upload-pack", "not_git"},
           {"GET", "/a/b/c" + advertisement, "not_git"},
           {"POST", "/o/r/GIT-UPLOAD-PACK", "not_git"},
       }) {
    const Result<GitRoute> route = parse(c.method, c.target);
    ASSERT_FALSE(route) << c.target;
    EXPECT_EQ(code(route.error().reason), c.code)
        << c.method << " " << c.target << ": " << route.error().detail;
  }
}

TEST(GitRoute, RefusesWordsOfTheProtocolInsideANestedPath) {
  for (const char* target :
       {"/a/b/git-upload-pack/git-receive-pack", "/a/b/info/refs/git-receive-pack",
        "/a/b/c/info/git-upload-pack", "/a/b/git-receive-pack/info/refs?service=git-upload-pack"}) {
    const Result<GitRoute> route =
        parse(std::string_view(target).find('?') == std::string_view::npos ? "POST" : "GET", target,
              HostKind::GitLab);
    ASSERT_FALSE(route) << target;
    EXPECT_EQ(code(route.error().reason), "bad_request") << target;
  }
}

}  // namespace
}  // namespace sallyport::policy
