// What the gateway carries.

#include "git/gateway.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>

#include "git/gateway_session.h"

namespace sallyport::git {
namespace {

using audit::Kind;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Gateway, CarriesAnAdvertisementWithTheHeadersOfTheTableOnly) {
  Session session(
      {get("/acme/widget.git/info/refs?service=git-upload-pack",
           "User-Agent: git/2.39.5\r\nAccept: */*\r\nAccept-Encoding: gzip\r\nPragma: no-cache\r\n"
           "Git-Protocol: version=2\r\nAuthorization: Basic eDp5\r\nCookie: a=b\r\nX-Forwarded-For: 1\r\n"
           "Range: bytes=0-1\r\nProxy-Authorization: x\r\nUpgrade: h2c\r\n")});
  UpstreamScript& script = session.vault_script;
  answer_with(script, "upload-pack-advertisement", {"000eversion 2\n000fbundle-u", "ri\n0000"});
  script.head.headers.insert(script.head.headers.begin(), {{"expires", "never"},
                                                           {"set-cookie", "a=b"},
                                                           {"location", "https://evil.test/"},
                                                           {"www-authenticate", "Basic"},
                                                           {"strict-transport-security", "max-age=1"}});
  script.head.headers.push_back({"cache-control", "private, the-credential"});
  EXPECT_EQ(session.run(),
            "HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-advertisement\r\n"
            "Cache-Control: no-store\r\nTransfer-Encoding: chunked\r\n\r\n"
            "e\r\n000eversion 2\n\r\n4\r\n0000\r\n0\r\n\r\n");

  ASSERT_EQ(script.opened.size(), 1U);
  EXPECT_EQ(session.direct_script.opened.size(), 0U);
  const upstream::Request& request = script.opened[0];
  EXPECT_EQ(request.target, "/acme/widget.git/info/refs?service=git-upload-pack");
  EXPECT_EQ(request.rule, 0U);
  EXPECT_EQ(request.body, upstream::BodyKind::None);
  std::string names;
  for (const auto& header : request.headers) names += header.name + ";";
  EXPECT_EQ(names, "user-agent;accept;pragma;git-protocol;");

  expect_begin_and_end(session.recorder.events, Reason::None);
  const audit::Event& begin = session.recorder.events[0];
  EXPECT_EQ(request.request_id, begin.request);
  EXPECT_EQ(begin.rule, "sallyport.toml:3");
  EXPECT_EQ(begin.credential, "forge");
  EXPECT_EQ(begin.host, "forge.test");
  EXPECT_EQ(begin.method, "GET");
  EXPECT_EQ(begin.path, "/acme/widget.git/info/refs?service=git-upload-pack");
  EXPECT_EQ(begin.destination, "192.0.2.1:443");
  EXPECT_EQ(session.recorder.events[1].status, 200);
  EXPECT_EQ(session.recorder.events[1].bytes_out, 18U);
  EXPECT_EQ(session.fates, std::vector{Fate::KeepAlive});
}

TEST(Gateway, GoesDirectlyWhereTheRuleNamesNoCredential) {
  Session session({info_refs("/open/thing", "upload-pack")});
  answer_with(session.direct_script, "upload-pack-advertisement", {"0000"});
  session.run();
  EXPECT_EQ(session.direct_script.opened.size(), 1U);
  EXPECT_EQ(session.vault_script.opened.size(), 0U);
  EXPECT_EQ(session.recorder.events[0].credential, "");
}

TEST(Gateway, CarriesACompressedFetchUntouched) {
  Session session({post("/acme/docs/git-upload-pack", "upload-pack", "\x1f\x8b...",
                        "Content-Encoding: gzip\r\nAccept-Encoding: gzip\r\n")});
  UpstreamScript& script = session.vault_script;
  answer_with(script, "upload-pack-result", {"PA", "CK"});
  script.head.body_bytes = 4;
  script.head.headers.push_back({"content-encoding", "gzip"});
  EXPECT_EQ(
      session.run(),
      "HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-result\r\nCache-Control: no-store\r\n"
      "Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\nPACK");
  EXPECT_EQ(script.sent, "\x1f\x8b...");
  EXPECT_EQ(script.opened.at(0).body, upstream::BodyKind::Declared);
  EXPECT_EQ(script.opened.at(0).body_bytes, 5U);
  EXPECT_EQ(session.recorder.events.at(1).bytes_in, 5U);
  EXPECT_EQ(session.recorder.events.at(1).bytes_out, 4U);
  EXPECT_EQ(session.fates, std::vector{Fate::KeepAlive});
}

TEST(Gateway, SendsTheListOfAPushAsItWasUnderstood) {
  std::string written;
  append_pkt(written, kZero + " " + kOne + " refs/heads/main\0report-status\n"s);
  written += "0000PACK...";
  const std::string understood = push_list("report-status") + "PACK...";
  for (const std::string& request :
       {post("/acme/widget/git-receive-pack", "receive-pack", written),
        chunked_post("/acme/widget/git-receive-pack", "receive-pack", written)}) {
    Session session({request});
    UpstreamScript& script = session.vault_script;
    answer_with(script, "receive-pack-result", {"000eunpack ok\n0000"});
    EXPECT_THAT(session.run(), HasSubstr("000eunpack ok\n0000"));
    EXPECT_EQ(script.sent, understood);
    EXPECT_TRUE(script.body_ended);
    if (script.opened.at(0).body == upstream::BodyKind::Declared) {
      EXPECT_EQ(script.opened[0].body_bytes, understood.size());
    }
    expect_begin_and_end(session.recorder.events, Reason::None);
    ASSERT_EQ(session.recorder.events[0].refs.size(), 1U);
    EXPECT_EQ(session.recorder.events[0].refs[0].ref, "refs/heads/main");
    EXPECT_EQ(session.recorder.events[0].refs[0].new_id, kOne);
    EXPECT_EQ(session.fates, std::vector{Fate::KeepAlive});
  }
}

TEST(Gateway, CarriesADeletionWithoutAPack) {
  Session session({post("/acme/widget/git-receive-pack", "receive-pack", push_list("report-status", kZero))});
  answer_with(session.vault_script, "receive-pack-result", {"000eunpack ok\n0000"});
  session.run();
  EXPECT_EQ(session.vault_script.sent, push_list("report-status", kZero));
  EXPECT_TRUE(session.vault_script.body_ended);
}

TEST(Gateway, WritesEveryRefOfALargePushToTheAuditLog) {
  std::string list;
  for (int i = 0; i < 130; ++i) append_pkt(list, fmt::format("{} {} refs/heads/{}", kZero, kOne, i));
  Session session({post("/acme/widget/git-receive-pack", "receive-pack", list + "0000PACK")});
  answer_with(session.vault_script, "receive-pack-result", {"0000"});
  session.run();
  const auto& events = session.recorder.events;
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(events[0].refs_total, 130U);
  EXPECT_EQ(events[0].refs.size() + events[1].refs.size() + events[2].refs.size(), 130U);
  EXPECT_EQ(events[1].kind, Kind::Refs);
  EXPECT_EQ(events[2].refs.back().ref, "refs/heads/129");
  EXPECT_EQ(events[2].request, events[0].request);
  EXPECT_EQ(events[3].kind, Kind::End);
}

TEST(Gateway, AnswersTheProbeItself) {
  for (const std::string service : {"upload-pack", "receive-pack"}) {
    Session session({post("/acme/widget/git-" + service, service, "0000")});
    EXPECT_EQ(session.run(), "HTTP/1.1 200 OK\r\nContent-Type: application/x-git-" + service +
                                 "-result\r\nCache-Control: no-store\r\nContent-Length: 0\r\n\r\n");
    EXPECT_EQ(session.opened(), 0U);
    expect_begin_and_end(session.recorder.events, Reason::None);
    EXPECT_EQ(session.fates, std::vector{Fate::KeepAlive});
  }
}

TEST(Gateway, SaysContinueBeforeItReadsTheBody) {
  for (const std::string service : {"upload-pack", "receive-pack"}) {
    const std::string body = service == "upload-pack" ? "0011want something" : push_list() + "PACK";
    Session session({post("/acme/widget/git-" + service, service, body, "Expect: 100-continue\r\n")});
    answer_with(session.vault_script, service + "-result", {"0000"});
    EXPECT_THAT(session.run(), StartsWith("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"));
    EXPECT_EQ(session.vault_script.sent, body);
  }
}

TEST(Gateway, JudgesEachPipelinedRequestAnew) {
  Session session({fetch_post() + info_refs("/acme/other", "upload-pack") + fetch_post("/acme/docs")});
  answer_with(session.vault_script, "upload-pack-result", {"PACK"});
  const std::string& output = session.run(3);
  EXPECT_EQ(session.vault_script.opened.size(), 2U);
  EXPECT_THAT(output, HasSubstr("HTTP/1.1 403 Forbidden"));
  EXPECT_THAT(output, EndsWith("PACK\r\n0\r\n\r\n"));
  EXPECT_EQ(session.fates, (std::vector{Fate::KeepAlive, Fate::KeepAlive, Fate::KeepAlive}));
  ASSERT_EQ(session.recorder.events.size(), 5U);
  EXPECT_EQ(session.recorder.events[2].kind, Kind::Refused);
}

TEST(Gateway, ReadsTheSameHoweverTheBytesAreCut) {
  const std::string bytes =
      chunked_post("/acme/widget/git-receive-pack", "receive-pack", push_list() + "PACK...");
  for (std::size_t cut = 1; cut < bytes.size(); ++cut) {
    Session session({bytes.substr(0, cut), bytes.substr(cut)});
    answer_with(session.vault_script, "receive-pack-result", {"0000"});
    session.run();
    ASSERT_EQ(session.vault_script.sent, push_list() + "PACK...") << cut;
    ASSERT_EQ(session.fates, std::vector{Fate::KeepAlive}) << cut;
  }
}

constexpr std::string_view kAnswerEnd = "PACK\r\n0\r\n\r\n";

// Reads until `all` holds that many answers, or the connection's end.
net::Task<> read_answers(net::Stream& stream, std::string& all, int& count, int wanted) {
  std::string buffer(4096, '\0');
  std::size_t looked_at = all.size();
  while (count < wanted) {
    const auto got = co_await stream.read_some(buffer);
    if (!got || *got == 0) break;
    all += buffer.substr(0, *got);
    for (std::size_t at = 0; (at = all.find(kAnswerEnd, looked_at)) != std::string::npos; ++count) {
      looked_at = at + kAnswerEnd.size();
    }
  }
}

// The watch for a client that leaves is cancelled after every answer: the connection must survive that, and
// lose no byte of the next request, however early it comes.
TEST(Gateway, ServesRequestAfterRequestOnOneSocket) {
  net::Worker worker;
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  const auto client = net::make_socket_stream(worker, Fd(ends[0]), net::Peer::Client);
  const auto server = net::make_socket_stream(worker, Fd(ends[1]), net::Peer::Client);

  Session session({});
  answer_with(session.vault_script, "upload-pack-result", {"PACK"});
  http::Connection connection(*server, 443);
  const Context context{session.grant, session.recorder, session.vault, session.direct, session.live};
  const ClientSide side{audit::Entry::Tls, "192.0.2.1:443", policy::HostName::parse("forge.test").value(),
                        443};
  int served = 0;
  std::string answers;
  constexpr int kRequests = 60;

  worker.spawn(
      "server",
      [](const Context& ctx, const ClientSide& from, http::Connection& conn, int& count) -> net::Task<> {
        for (;;) {
          auto head = co_await conn.next_request();
          if (!head || !*head || co_await serve(ctx, from, conn, std::move(**head)) == Fate::Close) break;
          ++count;
        }
        co_await conn.finish();
      }(context, side, connection, served));
  worker.spawn("client", [](net::Worker& loop, net::Stream& stream, std::string& all) -> net::Task<> {
    int sent = 0;
    int answered = 0;
    for (int i = 0; i < kRequests; ++i) {
      // Alone, two at once, and in two pieces.
      const std::string request = fetch_post();
      const int at_once = i % 3 == 0 ? 2 : 1;
      const std::size_t cut = i % 3 == 1 ? request.size() / 2 : request.size();
      for (int j = 0; j < at_once; ++j) {
        EXPECT_TRUE(co_await stream.write_all(request.substr(0, cut)));
        EXPECT_TRUE(co_await stream.write_all(request.substr(cut)));
      }
      sent += at_once;
      co_await read_answers(stream, all, answered, sent);
    }
    EXPECT_TRUE(co_await stream.shutdown_write());
    co_await read_answers(stream, all, answered, sent + 1);
    loop.stop();
  }(worker, *client, answers));
  worker.run();

  EXPECT_EQ(served, kRequests * 4 / 3);
  EXPECT_EQ(session.recorder.events.size(), 2U * static_cast<std::size_t>(served));
  for (const audit::Event& event : session.recorder.events) {
    EXPECT_EQ(event.reason, Reason::None) << event.detail;
  }
}

}  // namespace
}  // namespace sallyport::git
