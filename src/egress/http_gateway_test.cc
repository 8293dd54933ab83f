#include "egress/http_gateway.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "audit/fake_recorder.h"
#include "forward/fake_upstream.h"
#include "http/fake_stream.h"

namespace sallyport::egress {
namespace {

using audit::Kind;
using forward::Fate;
using forward::UpstreamScript;
using http::FakeStream;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using When = UpstreamScript::When;
using Ends = UpstreamScript::Ends;

policy::AllowRule rule(std::string_view host, policy::Methods methods, const std::vector<std::string>& paths,
                       int line) {
  policy::AllowRule out{.hosts = {policy::HostPattern::parse(host).value()}, .methods = methods};
  for (const std::string& path : paths) out.paths.push_back(policy::PathPattern::parse(path).value());
  out.source = {"sallyport.toml", line};
  return out;
}

policy::Grant grant() {
  using enum policy::Method;
  policy::Grant out;
  auto api =
      rule("api.test", {Get, Head, Options}, {"/v1/**", "/dns-query", "/resolve", "/.well-known/**"}, 3);
  auto upload = rule("api.test", {Post, Put}, {"/up"}, 9);
  upload.max_body = 10;
  auto socket = rule("api.test", {Get}, {"/chat"}, 15);
  socket.websocket = true;
  auto clear = rule("plain.test", {Get}, {}, 21);
  clear.ports = {policy::kHttpPort};
  for (auto& each : {api, upload, socket, clear}) out.allow.push_back(each);
  policy::DenyRule deny{.hosts = {policy::HostPattern::parse("api.test").value()}};
  deny.paths = {policy::PathPattern::parse("/v1/secret").value()};
  deny.source = {"sallyport.toml", 27};
  out.deny.push_back(deny);
  return out;
}

// One client connection to a host of the grant, and one upstream.
struct Session {
  policy::Grant grant = egress::grant();
  audit::FakeRecorder recorder;
  UpstreamScript script;
  forward::FakeOpener direct{script};
  forward::Live live;
  FakeStream stream;
  forward::ClientSide client{audit::Entry::Tls, "192.0.2.1:443", policy::HostName::parse("api.test").value(),
                             443, policy::Scheme::Https};
  std::vector<Fate> fates;

  explicit Session(std::vector<std::string> input, FakeStream::End end = FakeStream::End::Silence)
      : stream(std::move(input), end) {}

  net::Task<bool> serve(int count) {
    const HttpContext context{grant, recorder, direct, live};
    http::Connection connection(stream, client.port);
    for (; count > 0; --count) {
      auto head = co_await connection.next_request();
      if (!head || !*head) co_return false;
      fates.push_back(co_await serve_http(context, client, connection, std::move(**head)));
      if (fates.back() == Fate::Close) break;
    }
    co_return true;
  }
  const std::string& run(int count = 1) {
    EXPECT_TRUE(http::run_alone(serve(count)));
    EXPECT_EQ(script.alive, 0);
    return stream.output;
  }
  std::string names() const {
    std::string out;
    for (const auto& header : script.opened.at(0).headers) out += header.name + ";";
    return out;
  }
};

std::string request(const std::string& line, const std::string& more = {}, const std::string& body = {}) {
  return line + " HTTP/1.1\r\nHost: api.test\r\n" + more + "\r\n" + body;
}

void expect_begin_and_end(const std::vector<audit::Event>& events, Reason reason) {
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].kind, Kind::Begin);
  EXPECT_EQ(events[1].kind, Kind::End);
  EXPECT_EQ(events[1].reason, reason) << code(events[1].reason) << ": " << events[1].detail;
  EXPECT_EQ(events[0].request, events[1].request);
}

TEST(HttpGateway, CarriesARequestAndItsAnswerAsTheyAre) {
  Session session({request("GET /v1/models?a=%20b",
                           "User-Agent: x\r\nAuthorization: Bearer y\r\nCookie: a\r\nRange: "
                           "bytes=0-1\r\nX-Empty:\r\n")});
  session.script.head = {
      .status = 206, .headers = {{"set-cookie", "a"}, {"set-cookie", "b"}}, .body_bytes = 4};
  session.script.body = {"bo", "dy"};
  EXPECT_EQ(
      session.run(),
      "HTTP/1.1 206 Partial Content\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nContent-Length: 4\r\n\r\nbody");
  ASSERT_EQ(session.script.opened.size(), 1U);
  const upstream::Request& sent = session.script.opened[0];
  EXPECT_EQ(sent.host.str(), "api.test");
  EXPECT_EQ(sent.method, "GET");
  EXPECT_EQ(sent.target, "/v1/models?a=%20b");
  EXPECT_EQ(sent.scheme, policy::Scheme::Https);
  EXPECT_EQ(sent.body, upstream::BodyKind::None);
  EXPECT_EQ(session.names(), "user-agent;authorization;cookie;range;x-empty;");
  expect_begin_and_end(session.recorder.events, Reason::None);
  const audit::Event& end = session.recorder.events[1];
  EXPECT_EQ(end.rule, "sallyport.toml:3");
  EXPECT_EQ(end.path, "/v1/models?a=%20b");
  EXPECT_EQ(end.status, 206);
  EXPECT_EQ(end.bytes_out, 4U);
  EXPECT_EQ(session.fates, std::vector{Fate::KeepAlive});
}

TEST(HttpGateway, PassesOnWhatUpstreamsSayNo) {
  for (const int status : {301, 401, 403, 404, 500}) {
    Session session({request("GET /v1/x")});
    session.script.head = {.status = status,
                           .headers = {{"location", "https://other.test/"}, {"www-authenticate", "Basic"}}};
    session.script.body = {"no"};
    EXPECT_THAT(session.run(), HasSubstr("Location: https://other.test/\r\nWww-Authenticate: Basic\r\n"
                                         "Transfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n"));
    EXPECT_EQ(session.script.opened.size(), 1U);
    expect_begin_and_end(session.recorder.events, Reason::None);
  }
}

TEST(HttpGateway, CarriesBodiesOfBothKinds) {
  const struct {
    std::string framing, body;
    upstream::BodyKind kind;
  } cases[] = {
      {"Content-Length: 10\r\n", "0123456789", upstream::BodyKind::Declared},
      {"Transfer-Encoding: chunked\r\n", "4\r\n0123\r\n6\r\n456789\r\n0\r\n\r\n", upstream::BodyKind::Open}};
  for (const auto& c : cases) {
    Session session({request("POST /up", c.framing + "Expect: 100-continue\r\n"), c.body});
    session.script.head.status = 204;
    EXPECT_EQ(session.run(), "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n");
    EXPECT_EQ(session.script.sent, "0123456789");
    EXPECT_EQ(session.script.opened.at(0).body, c.kind);
    EXPECT_EQ(session.names(), "");
    expect_begin_and_end(session.recorder.events, Reason::None);
    EXPECT_EQ(session.recorder.events[1].bytes_in, 10U);
    EXPECT_EQ(session.fates, std::vector{Fate::KeepAlive});
  }
}

TEST(HttpGateway, AnswersToHeadHaveTheLengthAndNoBody) {
  Session session({request("HEAD /v1/x"), request("GET /v1/y")});
  session.script.head.body_bytes = 4;
  session.script.ends = Ends::Cleanly;
  session.run();
  EXPECT_EQ(session.stream.output, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n");
  EXPECT_EQ(session.script.opened.at(0).method, "HEAD");
  EXPECT_EQ(session.fates, std::vector{Fate::KeepAlive});
}

TEST(HttpGateway, JudgesEveryRequestOfAConnection) {
  Session session({request("GET /v1/x"), request("GET /other"), request("GET /v1/y")});
  session.script.head.body_bytes = 0;
  session.run(3);
  ASSERT_EQ(session.recorder.events.size(), 5U);
  EXPECT_EQ(session.recorder.events[2].reason, Reason::PathNotAllowed);
  EXPECT_EQ(session.script.opened.size(), 2U);
}

// ---- another policy, while a request is under way ----

TEST(HttpGateway, ARequestThatIsRevokedWhileItsUpstreamIsReachedIsCut) {
  Session session({request("GET /v1/x")});
  session.script.while_opening = [&] { session.live.judge_again(session.grant, {}); };
  session.script.body = {"body"};
  EXPECT_EQ(session.run(), "");
  ASSERT_TRUE(session.script.opened.at(0).still_wanted);
  EXPECT_FALSE(session.script.body_ended);
  expect_begin_and_end(session.recorder.events, Reason::Revoked);
  EXPECT_EQ(session.fates, std::vector{Fate::Close});
}

TEST(HttpGateway, WhoWaitsForAnAnswerIsToldThatItIsRevoked) {
  Session session({request("GET /v1/x")});
  session.script.answers = UpstreamScript::When::Never;
  session.script.while_answering = [&] { session.live.judge_again(session.grant, {}); };
  EXPECT_THAT(session.run(),
              AllOf(HasSubstr("HTTP/1.1 403 "),
                    HasSubstr("The policy was changed, and allows this no longer.\napi.test\nrequest ")));
  expect_begin_and_end(session.recorder.events, Reason::Revoked);
}

TEST(HttpGateway, AnAnswerThatIsRevokedIsCut) {
  Session session({request("GET /v1/x")});
  session.script.body = {"first", "second", "third"};
  int reads = 0;
  session.script.while_answering = [&] {
    if (++reads == 3) session.live.judge_again(session.grant, {});
  };
  session.script.ends = Ends::Silently;
  EXPECT_THAT(session.run(), AllOf(HasSubstr("first"), Not(HasSubstr("third"))));
  expect_begin_and_end(session.recorder.events, Reason::Revoked);
  EXPECT_EQ(session.fates, std::vector{Fate::Close});
}

TEST(HttpGateway, ABodyThatWaitsForItsRestIsCut) {
  Session session({request("POST /up", "Content-Length: 10\r\n"), "01234"});
  session.script.answers = UpstreamScript::When::Never;
  session.script.while_answering = [&] { session.live.judge_again(session.grant, {}); };
  session.run();
  expect_begin_and_end(session.recorder.events, Reason::Revoked);
  EXPECT_EQ(session.fates, std::vector{Fate::Close});
}

TEST(HttpGateway, ARequestThatIsStillAllowedGoesOnUnderAnotherPolicy) {
  Session session({request("GET /v1/x")});
  session.script.body = {"first", "second"};
  session.script.while_answering = [&] { session.live.judge_again(session.grant, session.grant); };
  EXPECT_THAT(session.run(), HasSubstr("second"));
  expect_begin_and_end(session.recorder.events, Reason::None);
  EXPECT_EQ(session.live.size(), 0U);
}

TEST(HttpGateway, DropsFieldsOfOneConnectionAndForgedOnes) {
  Session session({request(
      "GET /v1/x",
      "Connection: X-Private, keep-alive\r\nX-Private: 1\r\nX_Private: 1\r\nKeep-Alive: 1\r\nTE: trailers\r\n"
      "Trailer: x\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\nProxy-Authorization: x\r\nProxy-Connection: x\r\n"
      "X-Forwarded-For: 1\r\nX-Forwarded-Host: x\r\nX_Forwarded_For: 1\r\nForwarded: for=1\r\nVia: x\r\n"
      "X-Real-IP: 1\r\nX-HTTP-Method-Override: DELETE\r\nX-HTTP-Method: DELETE\r\nX-Method-Override: "
      "DELETE\r\n"
      "Transfer_Encoding: chunked\r\nAccept: */*\r\n")});
  session.run();
  EXPECT_EQ(session.names(), "accept;");
  EXPECT_EQ(session.script.opened.at(0).upgrade, "");
}

TEST(HttpGateway, DropsTheClientsOwnCredentialsWhereTheGatewayHasOne) {
  for (const bool credentialed : {false, true}) {
    Session session({request("GET /v1/x",
                             "Authorization: a\r\nCookie: b\r\nX-Api-Key: c\r\nX_Api_Key: c\r\n"
                             "Api-Key: d\r\nX-Goog-Api-Key: e\r\nAccept: */*\r\n")});
    session.grant.git.push_back(
        {policy::RepoPattern::parse("api.test/acme/*", policy::HostKind::Generic).value(),
         policy::Access::Fetch,
         credentialed ? "forge" : "",
         {"sallyport.toml", 40}});
    session.run();
    EXPECT_EQ(
        session.names(),
        credentialed ? "accept;" : "authorization;cookie;x-api-key;x_api_key;api-key;x-goog-api-key;accept;");
  }
}

struct Refused {
  std::string what;
  std::string input;
  Reason reason;
};

TEST(HttpGateway, RefusesWithOneLineAndOpensNothing) {
  const std::string sixteen = "AAABAAABAAAAAAAA";
  const Refused cases[] = {
      {"another path", request("GET /other"), Reason::PathNotAllowed},
      {"another method", request("POST /v1/x", "Content-Length: 0\r\n"), Reason::MethodNotGranted},
      {"a denied path", request("GET /v1/secret"), Reason::DeniedByRule},
      {"a denied path in capitals", request("GET /v1/SECRET"), Reason::DeniedByRule},
      {"a URL of git's", request("GET /v1/r/info/refs?service=git-upload-pack"), Reason::RepoNotGranted},
      {"dot segments", request("GET /v1/../other"), Reason::BadRequest},
      {"encoded dot segments", request("GET /v1/%2e%2e/other"), Reason::BadRequest},
      {"an encoded slash", request("GET /v1/a%2fb"), Reason::PathNotAllowed},
      {"a method in the query", request("GET /v1/x?_method=DELETE"), Reason::BadRequest},
      {"a declared body over the limit", request("POST /up", "Content-Length: 11\r\n", "0123456789a"),
       Reason::TooLarge},
      {"another Host", "GET /v1/x HTTP/1.1\r\nHost: other.test\r\n\r\n", Reason::HostMismatch},
      {"another port in Host", "GET /v1/x HTTP/1.1\r\nHost: api.test:8443\r\n\r\n", Reason::HostMismatch},
      {"DoH by path", request("GET /dns-query?x=1"), Reason::DohRefused},
      {"DoH by Accept", request("GET /v1/x", "Accept: text/html, Application/DNS-Message;q=0.5\r\n"),
       Reason::DohRefused},
      {"DoH in JSON", request("GET /v1/x", "Accept: application/dns-json\r\n"), Reason::DohRefused},
      {"DoH by resolve", request("GET /resolve?name=x.test"), Reason::DohRefused},
      {"DoH by content type",
       request("POST /up", "Content-Type: application/dns-message\r\nContent-Length: 1\r\n", "x"),
       Reason::DohRefused},
      {"oblivious DoH",
       request("POST /up", "Content-Type: application/oblivious-dns-message\r\nContent-Length: 1\r\n", "x"),
       Reason::DohRefused},
      {"DoH by parameter", request("GET /v1/x?a=b&dns=" + sixteen), Reason::DohRefused},
      {"DoH by an encoded parameter", request("GET /v1/x?%64ns=" + sixteen), Reason::DohRefused},
      {"MASQUE", request("GET /.well-known/masque/udp/x/53/"), Reason::DohRefused},
  };
  for (const Refused& c : cases) {
    Session session({c.input});
    EXPECT_THAT(session.run(), StartsWith(fmt::format("HTTP/1.1 {} ", info(c.reason).status))) << c.what;
    EXPECT_THAT(session.stream.output, HasSubstr(std::string(info(c.reason).sentence))) << c.what;
    EXPECT_EQ(session.script.opened.size(), 0U) << c.what;
    ASSERT_EQ(session.recorder.events.size(), 1U) << c.what;
    EXPECT_EQ(session.recorder.events[0].kind, Kind::Refused) << c.what;
    EXPECT_EQ(session.recorder.events[0].reason, c.reason)
        << c.what << ": " << code(session.recorder.events[0].reason);
    EXPECT_THAT(session.stream.output, HasSubstr("request " + session.recorder.events[0].request)) << c.what;
  }
}

TEST(HttpGateway, IsNotTakenForDnsOverHttpsWhenItIsNone) {
  for (const char* target : {"/v1/x?dns=short", "/v1/x?dns=8.8.8.8,1.1.1.1,9.9.9.9", "/v1/dns-query",
                             "/v1/x?name=a", "/v1/x?mydns=AAABAAABAAAAAAAA"}) {
    Session session({request(std::string("GET ") + target, "Accept: application/json\r\n")});
    session.run();
    EXPECT_EQ(session.script.opened.size(), 1U) << target;
  }
}

TEST(HttpGateway, SaysWhichRuleWouldAllowIt) {
  Session text({request("POST /other?key=sesame", "Authorization: sesame\r\nContent-Length: 0\r\n")});
  const std::string& output = text.run();
  EXPECT_THAT(output, EndsWith("api.test\nWhoever runs this sandbox can allow it in its policy:\n[[allow]]\n"
                               "host = \"api.test\"\nmethods = [\"POST\"]\npaths = [\"/other\"]\nrequest " +
                               text.recorder.events.at(0).request + "\n"));
  EXPECT_THAT(text.stream.output, Not(HasSubstr("sesame")));
  EXPECT_EQ(text.fates, std::vector{Fate::KeepAlive});
  Session json({request("GET /other", "Accept: application/json\r\n")});
  EXPECT_THAT(json.run(), HasSubstr("{\"error\":\"path_not_allowed\",\"status\":403,"));
  Session denied({request("GET /v1/secret")});
  EXPECT_THAT(denied.run(), Not(HasSubstr("[[allow]]")));
}

TEST(HttpGateway, CutsABodyThatPassesItsLimit) {
  Session session(
      {request("PUT /up", "Transfer-Encoding: chunked\r\n"), "a\r\n0123456789\r\n", "1\r\nx\r\n"});
  session.script.answers = When::Never;
  EXPECT_THAT(session.run(), StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(session.stream.output, HasSubstr("Connection: close\r\n"));
  EXPECT_EQ(session.script.sent, "0123456789");
  EXPECT_FALSE(session.script.body_ended);
  expect_begin_and_end(session.recorder.events, Reason::TooLarge);
  EXPECT_EQ(session.fates, std::vector{Fate::Close});
}

TEST(HttpGateway, NothingGoesOutWithoutItsLine) {
  Session session({request("GET /v1/x")});
  session.recorder.accepts = false;
  EXPECT_THAT(session.run(), StartsWith("HTTP/1.1 503 "));
  EXPECT_EQ(session.script.opened.size(), 0U);
}

TEST(HttpGateway, ReportsAnUpstreamThatFails) {
  Session closed({request("GET /v1/x")});
  closed.script.open_error = Reason::UpstreamUnreachable;
  EXPECT_THAT(closed.run(), StartsWith("HTTP/1.1 502 "));
  expect_begin_and_end(closed.recorder.events, Reason::UpstreamUnreachable);
  EXPECT_EQ(closed.fates, std::vector{Fate::KeepAlive});

  Session cut({request("GET /v1/x")});
  cut.script.body = {"half"};
  cut.script.ends = Ends::Cut;
  EXPECT_THAT(cut.run(), EndsWith("4\r\nhalf\r\n"));
  EXPECT_TRUE(cut.stream.closed);
  expect_begin_and_end(cut.recorder.events, Reason::UpstreamTruncated);
}

TEST(HttpGateway, AClientThatLeavesEndsTheExchange) {
  Session session({request("GET /v1/x")}, FakeStream::End::Eof);
  session.script.answers = When::Never;
  session.run();
  expect_begin_and_end(session.recorder.events, Reason::ClientClosed);
  EXPECT_EQ(session.stream.output, "");
}

// Before the upstream has said that there is no more: the client knows that.
TEST(HttpGateway, AClientMayLeaveOnceItHasAnAnswerWithoutABody) {
  struct Case {
    std::string request;
    int status;
    std::optional<std::uint64_t> length;
  };
  for (const auto& [asked, status, length] :
       {Case{request("HEAD /v1/x"), 200, 5}, Case{request("GET /v1/x"), 204, std::nullopt},
        Case{request("GET /v1/x"), 304, std::nullopt}, Case{request("GET /v1/x"), 200, 0}}) {
    for (const auto end : {FakeStream::End::Eof, FakeStream::End::Reset}) {
      Session session({asked}, FakeStream::End::Silence);
      session.stream.end_when_answered = end;
      session.script.head = {.status = status, .headers = {}, .body_bytes = length};
      session.script.ends = Ends::Later;
      session.run();
      expect_begin_and_end(session.recorder.events, Reason::None);
    }
  }
  Session half({request("GET /v1/x")}, FakeStream::End::Silence);
  half.stream.end_when_answered = FakeStream::End::Eof;
  half.script.head = {.status = 200, .headers = {}, .body_bytes = 5};
  half.script.ends = Ends::Later;
  half.run();
  expect_begin_and_end(half.recorder.events, Reason::ClientClosed);
}

TEST(HttpGateway, AnEarlyAnswerArrivesWhileTheBodyIsDrained) {
  Session session({request("POST /up", "Content-Length: 10\r\n"), "01234", "56789"});
  session.script.answers = When::AtOnce;
  session.script.reads = UpstreamScript::Reads::Fails;
  session.script.head = {.status = 409, .headers = {}, .body_bytes = 0};
  EXPECT_THAT(session.run(), StartsWith("HTTP/1.1 409 Conflict\r\n"));
  expect_begin_and_end(session.recorder.events, Reason::None);
  EXPECT_EQ(session.fates, std::vector{Fate::KeepAlive});
}

TEST(HttpGateway, GoesInTheClearOnlyWhereItCameInTheClear) {
  Session session({"GET /x HTTP/1.1\r\nHost: plain.test\r\n\r\n"});
  session.client = {audit::Entry::Http, "192.0.2.1:80", policy::HostName::parse("plain.test").value(), 80,
                    policy::Scheme::Http};
  session.run();
  EXPECT_EQ(session.script.opened.at(0).scheme, policy::Scheme::Http);
  EXPECT_EQ(session.script.opened.at(0).port, 80);
  EXPECT_EQ(session.recorder.events.at(0).scheme, "http");
}

// ---- WebSocket ----

const std::string kHandshake =
    "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

TEST(HttpGateway, RelaysAWebSocketWithEarlyBytesOfBothSides) {
  Session session({request("GET /chat", kHandshake) + "early"}, FakeStream::End::Eof);
  auto far = std::make_unique<FakeStream>(std::vector<std::string>{"more"}, FakeStream::End::Eof);
  session.script.head = {.status = 101, .headers = {{"sec-websocket-accept", "x"}}};
  session.script.switched = {std::move(far), "hello"};
  EXPECT_EQ(session.run(),
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            "Sec-Websocket-Accept: x\r\n\r\nhellomore");
  EXPECT_EQ(session.script.opened.at(0).upgrade, "websocket");
  EXPECT_EQ(session.names(), "sec-websocket-version;sec-websocket-key;");
  expect_begin_and_end(session.recorder.events, Reason::None);
  EXPECT_EQ(session.recorder.events[1].bytes_in, 5U);
  EXPECT_EQ(session.recorder.events[1].bytes_out, 9U);
  EXPECT_EQ(session.fates, std::vector{Fate::Close});
}

TEST(HttpGateway, AWebSocketThatTheUpstreamDeclinesIsAnOrdinaryAnswer) {
  Session session({request("GET /chat", kHandshake)});
  session.script.head = {.status = 426, .headers = {}, .body_bytes = 0};
  EXPECT_THAT(session.run(), StartsWith("HTTP/1.1 426 Upgrade Required\r\n"));
  expect_begin_and_end(session.recorder.events, Reason::None);
}

TEST(HttpGateway, AsksForNoUpgradeWithoutARuleOrAWholeHandshake) {
  std::string other = kHandshake;
  other.replace(other.find("websocket"), 9, "h2c");
  std::string bare = kHandshake.substr(0, kHandshake.find("Sec-WebSocket-Key"));
  for (const auto& [target, fields] : {std::pair{"/v1/x", kHandshake}, {"/chat", other}, {"/chat", bare}}) {
    Session session({request(std::string("GET ") + target, fields)});
    session.run();
    EXPECT_EQ(session.script.opened.at(0).upgrade, "") << target;
    EXPECT_THAT(session.names(), Not(HasSubstr("upgrade;"))) << target;
  }
}

}  // namespace
}  // namespace sallyport::egress
