// What the gateway refuses before anything is opened, and how it says so.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "git/gateway_session.h"
#include "git/limits.h"

namespace sallyport::git {
namespace {

using audit::Kind;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

struct Refused {
  std::string what;
  std::string request;
  Reason reason;
  std::string status_line;
  std::string body;  // a part of it
  Fate fate = Fate::KeepAlive;
};

void PrintTo(const Refused& refused, std::ostream* out) {
  *out << refused.what;
}

class GatewayRefuses : public ::testing::TestWithParam<Refused> {};

TEST_P(GatewayRefuses, It) {
  const Refused& refused = GetParam();
  Session session({refused.request});
  const std::string& output = session.run();
  EXPECT_THAT(output, StartsWith("HTTP/1.1 " + refused.status_line + "\r\n")) << refused.what;
  EXPECT_THAT(body_of(output), HasSubstr(refused.body)) << refused.what;
  EXPECT_EQ(session.opened(), 0U) << refused.what;
  ASSERT_EQ(session.recorder.events.size(), 1U) << refused.what;
  const audit::Event& event = session.recorder.events[0];
  EXPECT_EQ(event.kind, Kind::Refused);
  EXPECT_EQ(event.reason, refused.reason)
      << refused.what << ": " << code(event.reason) << " " << event.detail;
  const Fate fate = ends_connection(refused.reason) ? Fate::Close : refused.fate;
  EXPECT_EQ(session.fates, std::vector{fate}) << refused.what;
  EXPECT_THAT(output, HasSubstr(event.request)) << refused.what;
  EXPECT_THAT(output, Not(HasSubstr("WWW-Authenticate")));
  EXPECT_THAT(output, Not(HasSubstr("SECRET"))) << "a header of the client's was echoed";
}

std::vector<Refused> policy_cases() {
  const std::string not_granted = "The policy does not grant this repository";
  const std::string no_push = "The policy grants fetching from this repository, not pushing";
  return {
      {"unknown repository, asked for refs",
       get("/acme/other/info/refs?service=git-upload-pack", "Authorization: SECRET\r\n"),
       Reason::RepoNotGranted, "403 Forbidden", "sallyport: " + not_granted + ".\nforge.test/acme/other\n"},
      {"unknown repository, asked for a push", info_refs("/acme/other", "receive-pack"),
       Reason::RepoNotGranted, "403 Forbidden", not_granted},
      {"unknown repository, fetch", fetch_post("/acme/other"), Reason::RepoNotGranted, "200 OK",
       "ERR sallyport: " + not_granted},
      {"unknown repository, push", push_post("/acme/other"), Reason::RepoNotGranted, "200 OK",
       "ng refs/heads/main " + not_granted + "\n"},
      {"unknown repository, probe", post("/acme/other/git-receive-pack", "receive-pack", "0000"),
       Reason::RepoNotGranted, "403 Forbidden", not_granted},
      {"push on a fetch grant, asked for refs", info_refs("/acme/docs", "receive-pack"),
       Reason::PushNotGranted, "403 Forbidden", no_push},
      {"push on a fetch grant", push_post("/acme/docs"), Reason::PushNotGranted, "200 OK", "unpack ok\n"},
      {"chunked push on a fetch grant",
       chunked_post("/acme/docs/git-receive-pack", "receive-pack", push_list() + std::string(100'000, 'x')),
       Reason::PushNotGranted, "200 OK", "ng refs/heads/main " + no_push},
      {"push without a report", post("/acme/docs/git-receive-pack", "receive-pack", push_list("quiet")),
       Reason::PushNotGranted, "403 Forbidden", no_push},
      {"unreadable push on a fetch grant", post("/acme/docs/git-receive-pack", "receive-pack", "00zz"),
       Reason::PushNotGranted, "403 Forbidden", no_push},
      {"other case, on a host that does not fold it", info_refs("/Acme/widget", "upload-pack"),
       Reason::RepoNotGranted, "403 Forbidden", ""},
      {"LFS", post("/acme/widget.git/info/lfs/objects/batch", "x", "{}"), Reason::LfsNotGranted,
       "501 Not Implemented", R"({"message":"sallyport: Git LFS is not available for this repository.")",
       Fate::Close},
      {"dumb HTTP", get("/acme/widget/info/refs"), Reason::DumbHttp, "403 Forbidden", "dumb HTTP"},
      {"dumb HTTP's HEAD", get("/acme/widget/HEAD"), Reason::DumbHttp, "403 Forbidden", "dumb HTTP"},
      {"dumb HTTP's objects", get("/acme/widget.git/objects/info/packs"), Reason::DumbHttp, "403 Forbidden",
       "dumb HTTP"},
      {"a web page", get("/acme/widget"), Reason::NotGit, "403 Forbidden", "Only git"},
      {"the root", get("/"), Reason::NotGit, "403 Forbidden", "Only git"},
  };
}

std::vector<Refused> request_cases() {
  const std::string fetch = "/acme/widget/git-upload-pack";
  const std::string push = "/acme/widget/git-receive-pack";
  const auto typed = [](const std::string& target, const std::string& type) {
    return "POST " + target + " HTTP/1.1\r\nHost: forge.test\r\n" + type + "Content-Length: 4\r\n\r\n0000";
  };
  const Fate close = Fate::Close;
  std::vector<Refused> cases{
      {"other Host", "GET / HTTP/1.1\r\nHost: other.test\r\n\r\n", Reason::HostMismatch,
       "421 Misdirected Request", "Host", close},
      {"other port", "GET / HTTP/1.1\r\nHost: forge.test:8443\r\n\r\n", Reason::HostMismatch,
       "421 Misdirected Request", "Host", close},
      {"POST for refs",
       "POST /acme/widget/info/refs?service=git-upload-pack HTTP/1.1\r\nHost: forge.test\r\n\r\n",
       Reason::MethodNotAllowed, "405 Method Not Allowed", ""},
      {"GET for a fetch", get(fetch), Reason::MethodNotAllowed, "405 Method Not Allowed", ""},
      {"no content type", typed(fetch, ""), Reason::BadContentType, "415 Unsupported Media Type", "", close},
      {"content type of the other service",
       typed(fetch, "Content-Type: application/x-git-receive-pack-request\r\n"), Reason::BadContentType,
       "415 Unsupported Media Type", "", close},
      {"content type with a parameter",
       typed(push, "Content-Type: application/x-git-receive-pack-request; charset=x\r\n"),
       Reason::BadContentType, "415 Unsupported Media Type", "", close},
      {"content type twice",
       typed(fetch,
             "Content-Type: application/x-git-upload-pack-request\r\nContent-Type: "
             "application/x-git-upload-pack-request\r\n"),
       Reason::BadRequest, "400 Bad Request", "", close},
      {"compressed push", post(push, "receive-pack", push_list(), "Content-Encoding: gzip\r\n"),
       Reason::BadContentEncoding, "415 Unsupported Media Type", "", close},
      {"fetch compressed otherwise", post(fetch, "upload-pack", "0000", "Content-Encoding: br\r\n"),
       Reason::BadContentEncoding, "415 Unsupported Media Type", "", close},
      {"Git-Protocol with odd characters",
       get("/acme/widget/info/refs?service=git-upload-pack", "Git-Protocol: version=2 x\r\n"),
       Reason::BadRequest, "400 Bad Request", ""},
      {"push list with a delim", post(push, "receive-pack", "0001"), Reason::BadPush, "400 Bad Request", ""},
      {"push list that is cut", post(push, "receive-pack", push_list().substr(0, 50)), Reason::BadPush,
       "400 Bad Request", ""},
      {"empty push", post(push, "receive-pack", ""), Reason::BadPush, "400 Bad Request", ""},
      {"push certificate", post(push, "receive-pack", "000dpush-cert0000"), Reason::PushCertificate,
       "403 Forbidden", "Signed pushes (git push --signed) are not passed on."},
      {"push options",
       post(push, "receive-pack", push_list("report-status side-band-64k push-options") + "0008ci.s0000PACK"),
       Reason::PushOptions, "200 OK", "ng refs/heads/main Push options (git push -o) are not passed on\n"},
      {"push options without a report", post(push, "receive-pack", push_list("push-options") + "0000PACK"),
       Reason::PushOptions, "403 Forbidden", "are not passed on."},
      {"push options on a fetch grant",
       post("/acme/docs/git-receive-pack", "receive-pack",
            push_list("report-status side-band-64k push-options") + "0000"),
       Reason::PushNotGranted, "200 OK", "ng refs/heads/main"},
      {"push certificate on a fetch grant",
       post("/acme/docs/git-receive-pack", "receive-pack", "000dpush-cert0000"), Reason::PushNotGranted,
       "403 Forbidden", ""},
      {"bytes behind a probe", post(push, "receive-pack", "0000PACK"), Reason::BadPush, "400 Bad Request",
       ""},
      {"bytes behind a deletion", post(push, "receive-pack", push_list("report-status", kZero) + "PACK"),
       Reason::BadPush, "400 Bad Request", ""},
      {"malformed chunk",
       "POST " + push +
           " HTTP/1.1\r\nHost: forge.test\r\nContent-Type: application/x-git-receive-pack-request\r\n"
           "Transfer-Encoding: chunked\r\n\r\n4;x\r\n0000\r\n0\r\n\r\n",
       Reason::BadRequest, "400 Bad Request", "", close},
  };
  for (const std::string target : {"/acme/widget.git/../../x/y.git/info/refs?service=git-upload-pack",
                                   "/acme/widget/info/refs?service=git-upload-pack&service=git-receive-pack",
                                   "/acme/widget/info/refs?service=git-receive-pack%00",
                                   "/acme/widget/info/refs?service=git%2dreceive-pack",
                                   "/acme%2fwidget.git/info/refs?service=git-upload-pack",
                                   "//acme/widget/info/refs?service=git-upload-pack",
                                   "/acme/widget/info/refs?service=git-upload-pack&x=1",
                                   "/acme/./widget/info/refs?service=git-upload-pack",
                                   "/acme/%77idget/info/refs?service=git-upload-pack",
                                   "/acme/widget.git.git/info/refs?service=git-upload-pack"}) {
    cases.push_back({target, get(target), Reason::BadRequest, "400 Bad Request", ""});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Policy, GatewayRefuses, ::testing::ValuesIn(policy_cases()));
INSTANTIATE_TEST_SUITE_P(Requests, GatewayRefuses, ::testing::ValuesIn(request_cases()));

TEST(Gateway, SaysWhatToAddToThePolicy) {
  Session session({info_refs("/acme/other", "upload-pack")});
  EXPECT_THAT(body_of(session.run()), HasSubstr("repo = \"forge.test/acme/other\"\naccess = \"fetch\"\n"));
}

TEST(Gateway, NamesTheRefsOfARefusedPushInTheAuditLog) {
  Session session({push_post("/acme/docs")});
  session.run();
  ASSERT_EQ(session.recorder.events.at(0).refs.size(), 1U);
  EXPECT_EQ(session.recorder.events[0].refs[0].ref, "refs/heads/main");
  EXPECT_EQ(session.recorder.events[0].rule, "sallyport.toml:8");
}

TEST(Gateway, LetsNothingThroughThatTheAuditLogDidNotTake) {
  for (const std::string& request : {info_refs("/acme/widget", "upload-pack"), fetch_post(), push_post()}) {
    Session session({request});
    session.recorder.accepts = false;
    EXPECT_THAT(session.run(), HasSubstr("The audit log cannot be written"));
    EXPECT_EQ(session.opened(), 0U);
    EXPECT_EQ(session.recorder.events.size(), 0U);
  }
}

TEST(Gateway, DrainsARefusedPushUpToItsCapAndThenCloses) {
  const std::string mebibyte(std::size_t{1} << 20U, 'x');
  const std::uint64_t size = push_list().size() + kMaxDrainBytes + 2 * mebibyte.size();
  std::vector<std::string> input{
      fmt::format("POST /acme/docs/git-receive-pack HTTP/1.1\r\nHost: forge.test\r\n"
                  "Content-Type: application/x-git-receive-pack-request\r\nContent-Length: {}\r\n\r\n{}",
                  size, push_list())};
  for (std::uint64_t i = 0; i < kMaxDrainBytes / mebibyte.size() + 2; ++i) input.push_back(mebibyte);
  Session session(std::move(input));
  EXPECT_THAT(session.run(), StartsWith("HTTP/1.1 403 Forbidden\r\n"));
  EXPECT_EQ(session.fates, std::vector{Fate::Close});
}

}  // namespace
}  // namespace sallyport::git
