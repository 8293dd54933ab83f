// What goes wrong on either side while a request is carried, and what the other side sees of it.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "forward/limits.h"
#include "git/gateway_session.h"
#include "git/limits.h"

namespace sallyport::git {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using When = UpstreamScript::When;
using Reads = UpstreamScript::Reads;
using Ends = UpstreamScript::Ends;

struct Trouble {
  std::string what;
  int status;
  std::string content_type;  // "": git's
  Reason reason;
};

void PrintTo(const Trouble& trouble, std::ostream* out) {
  *out << trouble.what;
}

class GatewayReports : public ::testing::TestWithParam<Trouble> {};

TEST_P(GatewayReports, InTheShapeThatGitReads) {
  const Trouble& trouble = GetParam();
  const std::string sentence(info(trouble.reason).sentence);
  const std::string status = fmt::format("HTTP/1.1 {} ", info(trouble.reason).status);
  struct Shape {
    std::string request;
    std::string type;
    std::string start;
    std::string words;
  };
  for (const Shape& shape : {
           Shape{info_refs("/acme/widget", "upload-pack"), "upload-pack-advertisement", status, sentence},
           Shape{info_refs("/acme/widget", "receive-pack"), "receive-pack-advertisement", status, sentence},
           Shape{fetch_post(), "upload-pack-result", "HTTP/1.1 200 ", "ERR sallyport: " + sentence},
           Shape{push_post(), "receive-pack-result", "HTTP/1.1 200 ",
                 "ng refs/heads/main " + sentence.substr(0, sentence.size() - 1) + "\n"},
       }) {
    Session session({shape.request});
    UpstreamScript& script = session.vault_script;
    answer_with(script, shape.type, {"0000"});
    if (!trouble.content_type.empty()) script.head.headers = {{"content-type", trouble.content_type}};
    script.head.headers.push_back({"location", "https://evil.test/"});
    script.head.headers.push_back({"www-authenticate", "Basic"});
    if (trouble.status == 0) {
      script.open_error = trouble.reason;
    } else {
      script.head.status = trouble.status;
    }
    const std::string& output = session.run();
    EXPECT_THAT(output, StartsWith(shape.start)) << trouble.what;
    EXPECT_THAT(body_of(output), HasSubstr(shape.words)) << trouble.what;
    EXPECT_THAT(output, Not(HasSubstr("evil.test")));
    EXPECT_THAT(output, Not(HasSubstr("401 ")));
    EXPECT_THAT(output, Not(HasSubstr("html")));
    expect_begin_and_end(session.recorder.events, trouble.reason);
    EXPECT_EQ(session.recorder.events[1].status, trouble.status);
    EXPECT_EQ(session.fates, std::vector{Fate::KeepAlive}) << trouble.what;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Upstream, GatewayReports,
    ::testing::Values(
        Trouble{"401", 401, "", Reason::UpstreamRefusedCredential},
        Trouble{"403", 403, "text/plain", Reason::UpstreamRefusedCredential},
        Trouble{"404", 404, "text/html", Reason::UpstreamNotFound},
        Trouble{"410", 410, "", Reason::UpstreamNotFound}, Trouble{"301", 301, "", Reason::UpstreamRedirect},
        Trouble{"307", 307, "", Reason::UpstreamRedirect}, Trouble{"304", 304, "", Reason::UpstreamRedirect},
        Trouble{"429", 429, "", Reason::UpstreamError},
        Trouble{"500", 500, "text/html", Reason::UpstreamError},
        Trouble{"204", 204, "", Reason::UpstreamError}, Trouble{"206", 206, "", Reason::UpstreamError},
        Trouble{"a login page", 200, "text/html; charset=utf-8", Reason::UpstreamError},
        Trouble{"a type that only begins like git's", 200, "application/x-git-upload-pack-advertisementx",
                Reason::UpstreamError},
        Trouble{"down", 0, "", Reason::UpstreamUnreachable}, Trouble{"slow", 0, "", Reason::UpstreamTimeout},
        Trouble{"wrong certificate", 0, "", Reason::UpstreamTls},
        Trouble{"no vault", 0, "", Reason::VaultUnavailable}));

TEST(Gateway, RefusesAnAdvertisementThatItCannotRead) {
  Session session({info_refs("/acme/widget", "upload-pack")});
  answer_with(session.vault_script, "upload-pack-advertisement", {"0000"});
  session.vault_script.head.headers.push_back({"content-encoding", "gzip"});
  EXPECT_THAT(session.run(), StartsWith("HTTP/1.1 502 "));
  expect_begin_and_end(session.recorder.events, Reason::UpstreamMalformed);
}

// An upstream that got a credential could hand it on in any word of its own.
TEST(Gateway, ShowsNoWordOfTheUpstreamsHead) {
  struct Case {
    const char* name;
    const char* value;
    Reason reason;
  };
  for (const Case& answer : {
           Case{"content-encoding", "the-credential", Reason::UpstreamMalformed},
           Case{"content-type", "text/the-credential", Reason::UpstreamError},
           Case{"content-type", "application/x-git-upload-pack-result; charset=the-credential", Reason::None},
           Case{"cache-control", "the-credential", Reason::None},
           Case{"expires", "the-credential", Reason::None},
           Case{"x-debug", "the-credential", Reason::None},
       }) {
    Session session({fetch_post()});
    UpstreamScript& script = session.vault_script;
    answer_with(script, "upload-pack-result", {"PACK"});
    std::erase_if(script.head.headers, [&](const auto& header) { return header.name == answer.name; });
    script.head.headers.push_back({answer.name, answer.value});
    EXPECT_THAT(session.run(), Not(HasSubstr("the-credential"))) << answer.value;
    expect_begin_and_end(session.recorder.events, answer.reason);
    EXPECT_THAT(session.recorder.events.at(1).detail, Not(HasSubstr("the-credential"))) << answer.value;
  }
}

TEST(Gateway, LetsTheClientSeeThatAnAnswerWasCut) {
  for (const bool declared : {false, true}) {
    Session session({fetch_post()});
    UpstreamScript& script = session.vault_script;
    answer_with(script, "upload-pack-result", {"PACK"});
    if (declared) script.head.body_bytes = 1000;
    script.ends = Ends::Cut;
    EXPECT_THAT(session.run(), EndsWith(declared ? "\r\n\r\nPACK" : "4\r\nPACK\r\n"));
    EXPECT_TRUE(session.stream.closed);
    EXPECT_EQ(session.fates, std::vector{Fate::Close});
    expect_begin_and_end(session.recorder.events, Reason::UpstreamTruncated);
  }
}

TEST(Gateway, CutsAnAdvertisementThatTurnsOutMalformed) {
  Session session({info_refs("/acme/widget", "upload-pack")});
  answer_with(session.vault_script, "upload-pack-advertisement", {"000eversion 2\n", "<html>"});
  EXPECT_THAT(session.run(), EndsWith("000eversion 2\n\r\n"));
  EXPECT_TRUE(session.stream.closed);
  expect_begin_and_end(session.recorder.events, Reason::UpstreamMalformed);
}

TEST(Gateway, PassesAnEarlyAnswerOnAndReadsTheRestOfTheBody) {
  Session session({push_post().substr(0, push_post().size() - 3)});
  UpstreamScript& script = session.vault_script;
  script.answers = When::AtOnce;
  answer_with(script, "receive-pack-result", {"000eunpack ok\n0000"});
  const auto both = [&]() -> net::Task<bool> {
    boost::asio::co_spawn(
        co_await boost::asio::this_coro::executor,
        [&]() -> net::Task<> {
          while (!session.stream.output.ends_with("0\r\n\r\n")) {
            boost::asio::steady_timer turn(co_await boost::asio::this_coro::executor,
                                           std::chrono::milliseconds(1));
            co_await turn.async_wait(boost::asio::use_awaitable);
          }
          session.stream.feed("...");
        },
        [](const std::exception_ptr&) {});
    co_return co_await session.serve_requests(1);
  };
  EXPECT_TRUE(http::run_alone(both()));
  EXPECT_EQ(session.fates, std::vector{Fate::KeepAlive});
  expect_begin_and_end(session.recorder.events, Reason::None);
}

TEST(Gateway, DoesNotHangOnAnUpstreamThatAnswersAndReadsNoFurther) {
  Session session({push_post()});
  UpstreamScript& script = session.vault_script;
  script.answers = When::AtOnce;
  script.reads = Reads::Nothing;
  script.head.status = 500;
  EXPECT_THAT(body_of(session.run()), HasSubstr("ng refs/heads/main The upstream answered with an error\n"));
  EXPECT_EQ(session.fates, std::vector{Fate::KeepAlive});
  expect_begin_and_end(session.recorder.events, Reason::UpstreamError);
}

TEST(Gateway, ReadsTheAnswerOfAnUpstreamThatTakesNoMoreOfTheBody) {
  Session session({push_post()});
  UpstreamScript& script = session.vault_script;
  script.answers = When::AtOnce;
  script.reads = Reads::Fails;
  script.head.status = 403;
  EXPECT_THAT(body_of(session.run()), HasSubstr("ng refs/heads/main The upstream refused"));
  expect_begin_and_end(session.recorder.events, Reason::UpstreamRefusedCredential);
}

// ---- clients that leave ----

TEST(Gateway, DropsTheExchangeWhenTheClientLeaves) {
  const std::string push = push_post();
  struct Leaving {
    std::string what;
    std::string request;
    When answers;
    Ends ends;
  };
  for (const Leaving& leaving : {
           Leaving{"in the middle of the body", push.substr(0, push.size() - 3), When::AfterBody,
                   Ends::Cleanly},
           Leaving{"while the upstream thinks", push, When::Never, Ends::Cleanly},
           Leaving{"in the middle of the answer", push, When::AfterBody, Ends::Silently},
       }) {
    for (const auto end : {FakeStream::End::Eof, FakeStream::End::Reset}) {
      Session session({leaving.request}, end);
      answer_with(session.vault_script, "receive-pack-result", {"0000"});
      session.vault_script.answers = leaving.answers;
      session.vault_script.ends = leaving.ends;
      session.run();
      EXPECT_EQ(session.fates, std::vector{Fate::Close}) << leaving.what;
      EXPECT_THAT(session.stream.output, Not(EndsWith("0\r\n\r\n"))) << leaving.what;
      expect_begin_and_end(session.recorder.events, Reason::ClientClosed);
    }
  }
}

TEST(Gateway, RecordsAPushThatBreaksOffInsideItsList) {
  Session session({push_post().substr(0, 190)}, FakeStream::End::Eof);
  session.run();
  EXPECT_EQ(session.stream.output, "");
  EXPECT_EQ(session.opened(), 0U);
  ASSERT_EQ(session.recorder.events.size(), 1U);
  EXPECT_EQ(session.recorder.events[0].reason, Reason::ClientClosed);
}

TEST(Gateway, RefusesAMalformedChunkInTheMiddleOfABody) {
  std::string request = chunked_post("/acme/widget/git-receive-pack", "receive-pack", push_list() + "PACK");
  request.resize(request.size() - std::string_view("0\r\n\r\n").size());
  Session session({request, "4;x\r\nPACK\r\n0\r\n\r\n"});
  answer_with(session.vault_script, "receive-pack-result", {"0000"});
  EXPECT_THAT(session.run(), StartsWith("HTTP/1.1 400 "));
  EXPECT_FALSE(session.vault_script.body_ended);
  EXPECT_EQ(session.fates, std::vector{Fate::Close});
  expect_begin_and_end(session.recorder.events, Reason::BadRequest);
}

TEST(GitTransfer, GivesAClientMoreTimeForAnAnswerThanTheUpstreamHas) {
  Session session({info_refs("/acme/widget", "upload-pack")});
  session.grant.timeouts.idle = std::chrono::milliseconds(5);
  answer_with(session.vault_script, "upload-pack-advertisement", {"0000"});
  session.run();
  EXPECT_EQ(session.stream.idle_limit, std::chrono::milliseconds(5) + forward::kAnswerGrace);
}

TEST(GitTransfer, LimitsTheSilenceOfARefusedRequestToo) {
  Session session({get("/acme/widget/settings")});
  session.grant.timeouts.idle = std::chrono::milliseconds(5);
  session.run();
  EXPECT_EQ(session.stream.idle_limit, std::chrono::milliseconds(5));
}

}  // namespace
}  // namespace sallyport::git
