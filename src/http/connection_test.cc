#include "http/connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include "http/fake_stream.h"
#include "http/limits.h"
#include "http/reply.h"

namespace sallyport::http {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Serves like a small server: reads each body whole and answers "ok", and gives one word for each thing that
// happened.
net::Task<std::string> transcript(Connection& connection) {
  std::string words;
  for (;;) {
    auto head = co_await connection.next_request();
    if (!head) {
      words += "error:" + std::string(code(head.error().reason)) + ";";
      co_await refuse(connection, {.reason = head.error().reason});
      break;
    }
    if (!*head) {
      words += "end;";
      break;
    }
    words += (*head)->method + (*head)->target + "=";
    std::string buffer(7, '\0');
    while (!connection.body_finished()) {
      const auto got = co_await connection.read_body(buffer);
      words += got ? buffer.substr(0, *got) : "!" + std::string(code(got.error().reason));
      if (!got) break;
    }
    words += ";";
    if (!co_await connection.begin_response(200, {}, 2) || !co_await connection.write_body("ok") ||
        !co_await connection.end_response() || !connection.reusable()) {
      break;
    }
  }
  co_await connection.finish();
  co_return words;
}

std::string serve(std::vector<std::string> pieces, FakeStream::End end = FakeStream::End::Eof) {
  FakeStream stream(std::move(pieces), end);
  Connection connection(stream, 443);
  return run_alone(transcript(connection));
}

struct Bytes {
  std::string bytes;
  std::string words;
};

const std::vector<Bytes> kConversations{
    {"GET /a HTTP/1.1\r\nHost: ok.test\r\n\r\n", "GET/a=;end;"},
    {"POST /a HTTP/1.1\r\nHost: ok.test\r\nContent-Length: 5\r\n\r\nhelloGET /b HTTP/1.1\r\nHost: "
     "ok.test\r\n\r\n",
     "POST/a=hello;GET/b=;end;"},
    {"POST /a HTTP/1.1\r\nHost: ok.test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\nA\r\nlo, "
     "world!\r\n0\r\n\r\n"
     "GET /b HTTP/1.1\r\nHost: ok.test\r\n\r\n",
     "POST/a=hello, world!;GET/b=;end;"},
    {"POST /a HTTP/1.1\r\nHost: ok.test\r\nContent-Length: 5\r\n\r\nhel", "POST/a=hel!client_closed;"},
    {"POST /a HTTP/1.1\r\nHost: ok.test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n",
     "POST/a=hel!client_closed;"},
    // What follows a body that is broken, or a request that is refused, is never served.
    {"POST /a HTTP/1.1\r\nHost: ok.test\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\nhel\r\n0\r\n\r\n"
     "GET /b HTTP/1.1\r\nHost: ok.test\r\n\r\n",
     "POST/a=!bad_request;"},
    {"POST /a HTTP/1.1\r\nHost: ok.test\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n"
     "GET /b HTTP/1.1\r\nHost: ok.test\r\n\r\n",
     "error:bad_request;"},
    {"GET /a HTTP/1.1\r\nHost: ok.test\r\nConnection: close\r\n\r\nGET /b HTTP/1.1\r\nHost: ok.test\r\n\r\n",
     "GET/a=;"},
    {"GET /a HTTP/1.1\r\nHost: ok", "error:client_closed;"},
    {"", "end;"},
};

TEST(Connection, ReadsTheSameHoweverTheBytesAreCut) {
  for (const Bytes& conversation : kConversations) {
    const std::string& bytes = conversation.bytes;
    EXPECT_EQ(serve(bytes.empty() ? std::vector<std::string>{} : std::vector{bytes}), conversation.words);
    for (std::size_t cut = 1; cut < bytes.size(); ++cut) {
      ASSERT_EQ(serve({bytes.substr(0, cut), bytes.substr(cut)}), conversation.words)
          << "cut at " << cut << " of " << bytes;
    }
    std::vector<std::string> single;
    for (const char c : bytes) single.emplace_back(1, c);
    EXPECT_EQ(serve(single), conversation.words) << bytes;
  }
}

TEST(Connection, EndsQuietlyWhenTheClientResetsBetweenRequests) {
  EXPECT_EQ(serve({"GET /a HTTP/1.1\r\nHost: ok.test\r\n\r\n"}, FakeStream::End::Reset), "GET/a=;end;");
}

// Runs one request through `act` and gives the output.
template <class Act>
std::string answer(const std::string& request, Act act) {
  FakeStream stream({request});
  Connection connection(stream, 443);
  const auto whole = [&]() -> net::Task<bool> {
    const auto head = co_await connection.next_request();
    EXPECT_TRUE(head && *head);
    co_await act(connection);
    co_return connection.reusable();
  };
  run_alone(whole());
  return stream.output;
}

const std::string kGet = "GET /a HTTP/1.1\r\nHost: ok.test\r\n\r\n";
const std::string kHead = "HEAD /a HTTP/1.1\r\nHost: ok.test\r\n\r\n";
const std::string kExpecting =
    "POST /a HTTP/1.1\r\nHost: ok.test\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\nhi";

TEST(Connection, WritesChunksWhenTheLengthIsNotKnown) {
  const std::string output = answer(kGet, [](Connection& connection) -> net::Task<> {
    EXPECT_TRUE(co_await connection.begin_response(200, {{"content-type", "a/b"}}, std::nullopt));
    EXPECT_TRUE(co_await connection.write_body("hello, "));
    EXPECT_TRUE(co_await connection.write_body(""));
    EXPECT_TRUE(co_await connection.write_body("wonderful world"));
    EXPECT_TRUE(co_await connection.end_response());
    EXPECT_TRUE(connection.reusable());
  });
  EXPECT_EQ(output,
            "HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nTransfer-Encoding: chunked\r\n\r\n"
            "7\r\nhello, \r\nf\r\nwonderful world\r\n0\r\n\r\n");
}

TEST(Connection, WritesNoBodyToHeadAndNoLengthWith204) {
  const auto act = [](Connection& connection) -> net::Task<> {
    EXPECT_TRUE(co_await reply(connection, 200, "text/plain", "hello"));
    EXPECT_TRUE(connection.reusable());
  };
  EXPECT_EQ(
      answer(kHead, act),
      "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nCache-Control: no-store\r\nContent-Length: 5\r\n\r\n");
  EXPECT_EQ(answer(kGet,
                   [](Connection& connection) -> net::Task<> {
                     EXPECT_TRUE(co_await connection.begin_response(204, {}, std::nullopt));
                     EXPECT_TRUE(co_await connection.end_response());
                   }),
            "HTTP/1.1 204 No Content\r\n\r\n");
}

TEST(Connection, NeverWritesMoreOrLessThanItAnnounced) {
  answer(kGet, [](Connection& connection) -> net::Task<> {
    EXPECT_TRUE(co_await connection.begin_response(200, {}, 2));
    EXPECT_EQ((co_await connection.write_body("abc")).error().reason, Reason::Internal);
    EXPECT_FALSE(connection.reusable());
  });
  answer(kGet, [](Connection& connection) -> net::Task<> {
    EXPECT_TRUE(co_await connection.begin_response(200, {}, 2));
    EXPECT_TRUE(co_await connection.write_body("a"));
    EXPECT_EQ((co_await connection.end_response()).error().reason, Reason::Internal);
    EXPECT_FALSE(connection.reusable());
  });
}

TEST(Connection, RefusesToWriteAFieldThatWouldBeTwo) {
  const std::string output = answer(kGet, [](Connection& connection) -> net::Task<> {
    EXPECT_FALSE(co_await connection.begin_response(200, {{"x", "a\r\nSet-Cookie: b"}}, 0));
    EXPECT_FALSE(co_await connection.begin_response(200, {{"x: y", "a"}}, 0));
  });
  EXPECT_EQ(output, "");
}

TEST(Connection, SaysContinueOnceAndNotAfterTheAnswerBegan) {
  EXPECT_EQ(answer(kExpecting,
                   [](Connection& connection) -> net::Task<> {
                     EXPECT_TRUE(co_await connection.send_continue());
                     EXPECT_TRUE(co_await connection.send_continue());
                   }),
            "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_THAT(answer(kExpecting,
                     [](Connection& connection) -> net::Task<> {
                       EXPECT_TRUE(co_await refuse(connection, {.reason = Reason::NotGit}));
                       EXPECT_TRUE(co_await connection.send_continue());
                     }),
              Not(HasSubstr("100 Continue")));
  EXPECT_EQ(
      answer(kGet,
             [](Connection& connection) -> net::Task<> { EXPECT_TRUE(co_await connection.send_continue()); }),
      "");
}

TEST(Connection, TellsWhenToTryAgainInWholeSecondsWithinLimits) {
  const std::vector<std::pair<double, std::string>> cases{{-1, "1"},   {0, "1"},     {1, "1"},
                                                          {1.01, "2"}, {59.5, "60"}, {1e300, "60"}};
  for (const auto& [wait, told] : cases) {
    const std::string output = answer(kGet, [&](Connection& connection) -> net::Task<> {
      connection.say_retry_after(std::chrono::duration<double>(wait));
      EXPECT_TRUE(co_await refuse(connection, {.reason = Reason::TooMany}));
    });
    EXPECT_THAT(output, HasSubstr("\r\nRetry-After: " + told + "\r\n"));
  }
}

TEST(Connection, ClosesWhenTheBodyWasNotReadToItsEnd) {
  const std::string output = answer(kExpecting, [](Connection& connection) -> net::Task<> {
    EXPECT_TRUE(co_await refuse(connection, {.reason = Reason::NotGit}));
    EXPECT_FALSE(connection.reusable());
  });
  EXPECT_THAT(output, HasSubstr("Connection: close\r\n"));
}

TEST(Connection, DrainsUpToACap) {
  answer(kExpecting, [](Connection& connection) -> net::Task<> {
    EXPECT_TRUE(co_await connection.drain_body(2));
    EXPECT_TRUE(connection.body_finished());
  });
  answer(kExpecting, [](Connection& connection) -> net::Task<> {
    EXPECT_EQ((co_await connection.drain_body(1)).error().reason, Reason::TooLarge);
  });
}

TEST(Connection, NoticesThatTheClientLeftWhileItWaits) {
  answer(kGet, [](Connection& connection) -> net::Task<> {
    EXPECT_EQ((co_await connection.wait_for_close()).error().reason, Reason::ClientClosed);
  });
  answer(kGet + kGet,
         [](Connection& connection) -> net::Task<> { EXPECT_TRUE(co_await connection.wait_for_close()); });
}

TEST(Connection, LetsTheLastAnswerArriveBeforeItCloses) {
  FakeStream stream({std::string(100, 'x'), std::string(100, 'y')});
  Connection connection(stream, 443);
  const auto act = [&]() -> net::Task<bool> {
    co_await connection.finish();
    co_return true;
  };
  run_alone(act());
  EXPECT_TRUE(stream.write_ended);
  EXPECT_TRUE(stream.closed);
  const auto read_after = [&]() -> net::Task<Status> { co_return co_await stream.wait_readable(); };
  EXPECT_FALSE(run_alone(read_after()));
}

TEST(Reply, SaysTheSentenceTheParticularsAndTheRequest) {
  EXPECT_EQ(
      refusal_text({.reason = Reason::RepoNotGranted, .particulars = "x.test/a/b", .request_id = "00ff"}),
      "sallyport: The policy does not grant this repository.\nx.test/a/b\nrequest 00ff\n");
  EXPECT_EQ(refusal_text({.reason = Reason::NotGit}), "sallyport: Only git is allowed at this host.\n");
}

TEST(Reply, NamesTheCommandToRunWhenTheGatewayIsInTrouble) {
  EXPECT_THAT(refusal_text({.reason = Reason::VaultUnavailable, .request_id = "00ff"}),
              ::testing::AllOf(HasSubstr("\nIf it stays so: "), HasSubstr("`sallyport run -v`"),
                               EndsWith("\nrequest 00ff\n")));
}

TEST(Reply, SaysTheSameToMachines) {
  EXPECT_EQ(
      refusal_json({.reason = Reason::RepoNotGranted, .particulars = "x\n[[git]]\n\"", .request_id = "00ff"}),
      R"({"error":"repo_not_granted","status":403,"message":"The policy does not grant this repository.",)"
      R"("particulars":"x\u000a[[git]]\u000a\"","advice":"","request":"00ff"})"
      "\n");
}

TEST(Reply, IsJsonForWhoAsksForItAndTextForEverybodyElse) {
  struct Case {
    std::string accept;
    std::string type;
  };
  for (const auto& test :
       {Case{"application/json", "application/json"}, Case{"Application/JSON", "application/json"},
        Case{"text/html, application/json;q=0.5", "application/json"}, Case{"*/*", "text/plain"},
        Case{"", "text/plain"}, Case{"application/json;q=0", "text/plain"},
        Case{"application/jsonp", "text/plain"}, Case{"text/plain", "text/plain"}}) {
    // The second request asks for nothing: what the first wanted is forgotten.
    FakeStream stream(
        {"GET /a HTTP/1.1\r\nHost: ok.test\r\nAccept: " + test.accept + "\r\n\r\n", kGet, "x\n"});
    Connection connection(stream, 443);
    const auto act = [&]() -> net::Task<bool> {
      for (int i = 0; i < 3; ++i) {
        const auto head = co_await connection.next_request();
        const Reason reason = head ? Reason::NotGit : head.error().reason;
        EXPECT_TRUE(co_await refuse(connection, {.reason = reason}));
        if (i == 0) EXPECT_THAT(stream.output, HasSubstr("\r\nContent-Type: " + test.type + "\r\n"));
        if (i > 0) EXPECT_THAT(stream.take_output(), HasSubstr("\r\nContent-Type: text/plain\r\n"));
        stream.take_output();
      }
      co_return true;
    };
    run_alone(act());
  }
}

TEST(Reply, EndsTheConnectionAfterARequestThatCannotBeReadInOneWay) {
  for (const Reason reason : {Reason::BadRequest, Reason::HostMismatch, Reason::NotGit, Reason::Overloaded}) {
    FakeStream stream({kGet});
    Connection connection(stream, 443);
    const auto act = [&]() -> net::Task<bool> {
      EXPECT_TRUE(co_await connection.next_request());
      EXPECT_TRUE(co_await refuse(connection, {.reason = reason}));
      co_return connection.reusable();
    };
    EXPECT_EQ(run_alone(act()), !ends_connection(reason)) << code(reason);
    EXPECT_EQ(stream.output.find("Connection: close") != std::string::npos, ends_connection(reason));
  }
}

struct Switch {
  std::string early;
  Reason reason = Reason::None;
  bool reusable = true;
};

net::Task<Switch> serve_switch(FakeStream& stream) {
  Connection connection(stream, 443);
  (void)co_await connection.next_request();
  auto early = co_await connection.switch_protocols("websocket", {{"sec-websocket-accept", "x"}});
  co_return Switch{early.value_or(""), early ? Reason::None : early.error().reason, connection.reusable()};
}

TEST(SwitchProtocols, GivesTheBytesBehindTheRequestAndEndsHttp) {
  FakeStream stream({"GET / HTTP/1.1\r\nHost: a.test\r\n\r\nearly"});
  const Switch done = run_alone(serve_switch(stream));
  EXPECT_EQ(done.early, "early");
  EXPECT_FALSE(done.reusable);
  EXPECT_EQ(stream.output,
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            "Sec-Websocket-Accept: x\r\n\r\n");
}

TEST(SwitchProtocols, NeverInsideABody) {
  FakeStream stream({"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 2\r\n\r\nx"});
  EXPECT_EQ(run_alone(serve_switch(stream)).reason, Reason::Internal);
  EXPECT_EQ(stream.output, "");
}

TEST(Reply, HasAPhraseForTheStatusOfEveryReason) {
  for (unsigned number = 0; number < 256; ++number) {
    const auto reason = reason_from_number(static_cast<std::uint8_t>(number));
    if (!reason || *reason == Reason::ClientClosed) continue;
    EXPECT_NE(reason_phrase(info(*reason).status), "") << code(*reason);
  }
}

TEST(Reply, KeepsTheConnectionAfterARefusalWithoutABody) {
  FakeStream stream({kGet, kGet});
  Connection connection(stream, 443);
  const auto act = [&]() -> net::Task<int> {
    int served = 0;
    for (;;) {
      const auto head = co_await connection.next_request();
      if (!head || !*head) co_return served;
      EXPECT_TRUE(co_await refuse(connection, {.reason = Reason::NotGit}));
      EXPECT_TRUE(connection.reusable());
      ++served;
    }
  };
  EXPECT_EQ(run_alone(act()), 2);
  EXPECT_THAT(stream.output, StartsWith("HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\n"));
}

TEST(HttpConnection, GivesEveryHeadTheLimitThatItWasMadeWith) {
  FakeStream stream(
      {"GET /a HTTP/1.1\r\nHost: forge.test\r\n\r\n", "GET /b HTTP/1.1\r\nHost: forge.test\r\n\r\n"});
  Connection connection(stream, 443, std::chrono::milliseconds(7));
  run_alone(transcript(connection));
  const std::vector<net::Clock::duration> wanted{
      std::chrono::milliseconds(7),
      std::chrono::milliseconds(7),  // before the first head, and in it
      kKeepAliveIdle,
      std::chrono::milliseconds(7),  // before the second, and in it
      kKeepAliveIdle,
      std::chrono::milliseconds(7),  // before the end, which reads like a head
      kLingerTimeout};
  EXPECT_EQ(stream.total_limits, wanted);
}

// What the process has on its heap whenever somebody waits for the client.
class RestingStream final : public FakeStream {
 public:
  using FakeStream::FakeStream;
  net::Task<Status> wait_readable() override {
    heap.push_back(::mallinfo2().uordblks);
    return FakeStream::wait_readable();
  }
  std::vector<std::size_t> heap;
};

constexpr std::size_t kSmall = kReadBytes / 4;

// An empty string may keep its memory: thousands of connections rest at once.
TEST(Connection, HoldsNoBufferBetweenRequests) {
  const std::string request = "POST /a HTTP/1.1\r\nHost: ok.test\r\nContent-Length: 2\r\n\r\nhi";
  RestingStream stream({request, request});
  Connection connection(stream, 443);
  EXPECT_EQ(run_alone(transcript(connection)), "POST/a=hi;POST/a=hi;end;");
  // It rests, and reads; twice, and rests.
  ASSERT_GE(stream.heap.size(), 5U);
  EXPECT_LT(stream.heap[2], stream.heap[0] + kSmall);
  EXPECT_LT(stream.heap[4], stream.heap[0] + kSmall);
}

TEST(Connection, HoldsNoBufferBesideATunnel) {
  FakeStream stream({"CONNECT ok.test:443 HTTP/1.1\r\n\r\nearly"}, FakeStream::End::Silence);
  Connection connection(stream, 80, policy::Timeouts{}.request_head, Entry::Proxy);
  const std::size_t before = ::mallinfo2().uordblks;
  const auto open = [&]() -> net::Task<std::size_t> {
    const auto head = co_await connection.next_request();
    EXPECT_TRUE(head && *head);
    EXPECT_EQ((co_await connection.open_tunnel()).value_or(""), "early");
    co_return ::mallinfo2().uordblks;
  };
  EXPECT_LT(run_alone(open()), before + kSmall);
}

}  // namespace
}  // namespace sallyport::http
