#include "control/api_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cstring>

#include "control/api_fixture.h"

namespace sallyport::control {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::Pair;
using ::testing::StartsWith;

std::string get(const std::string& path) {
  return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
}

std::string post(const std::string& path, const std::string& body) {
  return "POST " + path +
         " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

std::string body_of(const std::string& answer) {
  return answer.substr(answer.find("\r\n\r\n") + 4);
}

void send_with_descriptors(int socket, std::string bytes, std::size_t count) {
  std::vector<char> control(CMSG_SPACE(sizeof(int) * count));
  iovec part{bytes.data(), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int) * count);
  const std::vector<int> fds(count, STDIN_FILENO);
  std::memcpy(CMSG_DATA(header), fds.data(), sizeof(int) * count);
  ASSERT_EQ(::sendmsg(socket, &message, MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
}

int open_descriptors() {
  int count = 0;
  for (int fd = 0; fd < 4096; ++fd) count += ::fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
  return count;
}

TEST(ApiServer, AnswersWhatEveryDaemonAnswers) {
  ApiFixture api;
  EXPECT_THAT(
      answer_to(api.path(), get("/healthz")),
      AllOf(StartsWith("HTTP/1.1 200 \r\n"), HasSubstr("Connection: close\r\n"), EndsWith("\r\n\r\nok\n")));
  EXPECT_THAT(answer_to(api.path(), get("/readyz")),
              AllOf(StartsWith("HTTP/1.1 503 "), HasSubstr(R"("message":"the vault is not up")")));
  EXPECT_THAT(answer_to(api.path(), get("/metrics")), EndsWith("sallyport_sessions 0\n"));
  EXPECT_THAT(body_of(answer_to(api.path(), get("/v1/version"))),
              MatchesRegex("\\{\"version\":\"[0-9.]+\",\"api\":\"v1\"\\}\n"));
  api.stop();
  EXPECT_THAT(api.calls(),
              ElementsAre("GET /healthz 200", "GET /readyz 503", "GET /metrics 200", "GET /v1/version 200"));
  EXPECT_EQ(api.connections(), 0U);
}

TEST(ApiServer, HandsOverTheWholeCall) {
  ApiFixture api;
  EXPECT_EQ(body_of(answer_to(api.path(), post("/v1/echo/x?tail=5", R"({"a":[1]})"))),
            R"({"id":"x","uid":0,"query":{"tail":"5"},"descriptors":0,"body":{"a":[1]}})"
            "\n");
}

TEST(ApiServer, DoesNotCareHowARequestIsCut) {
  ApiFixture api;
  const std::string request = post("/v1/echo/x", R"({"a":[1]})");
  for (std::size_t at = 1; at < request.size(); ++at) {
    const Fd socket = os::connect_plainly(api.path());
    ASSERT_TRUE(send_plainly(socket.get(), request.substr(0, at)));
    ASSERT_TRUE(send_plainly(socket.get(), request.substr(at)));
    EXPECT_THAT(read_to_end(socket.get()), StartsWith("HTTP/1.1 201 ")) << at;
  }
  const Fd socket = os::connect_plainly(api.path());
  for (const char c : request) ASSERT_TRUE(send_plainly(socket.get(), {&c, 1}));
  EXPECT_THAT(read_to_end(socket.get()), StartsWith("HTTP/1.1 201 "));
}

TEST(ApiServer, AnswersLaterOrByLines) {
  ApiFixture api;
  EXPECT_THAT(answer_to(api.path(), get("/v1/later")), EndsWith("{\"late\":true}\n"));
  EXPECT_THAT(answer_to(api.path(), get("/v1/lines")),
              AllOf(HasSubstr("Transfer-Encoding: chunked\r\n"),
                    EndsWith("\r\n\r\nb\r\n{\"line\":0}\n\r\nb\r\n{\"line\":1}\n\r\n"
                             "b\r\n{\"line\":2}\n\r\n0\r\n\r\n")));
  EXPECT_THAT(answer_to(api.path(), get("/v1/no_lines")), EndsWith("\r\n\r\n0\r\n\r\n"));
  EXPECT_THAT(answer_to(api.path(), get("/v1/cut")), EndsWith("{\"line\":0}\n\r\n")) << "no end: it was cut";
}

TEST(ApiServer, AnswersWhateverAHandlerDoes) {
  ApiFixture api;
  EXPECT_THAT(answer_to(api.path(), get("/v1/dropped")),
              AllOf(StartsWith("HTTP/1.1 500 "), HasSubstr("\"internal\"")));
  EXPECT_THAT(answer_to(api.path(), get("/v1/thrown")), StartsWith("HTTP/1.1 500 "));
  EXPECT_THAT(
      body_of(answer_to(api.path(), get("/v1/refused"))),
      AllOf(HasSubstr(
                R"({"error":{"code":"repo_not_granted","message":"not \\xff yours","hint":"","request":")"),
            EndsWith("\"}}\n")));
  EXPECT_EQ(answer_to(api.path(), get("/v1/huge")).size() > kMaxAnswerBytes, true);
  EXPECT_THAT(answer_to(api.path(), get("/v1/too_huge")),
              AllOf(StartsWith("HTTP/1.1 500 "), EndsWith("\r\n\r\n")));
  api.stop();
  EXPECT_THAT(api.mistakes(), ElementsAre("a mistake"));
}

TEST(ApiServer, RefusesWhatItCannotServe) {
  ApiFixture api;
  const struct {
    std::string request;
    int status;
    const char* code;
  } cases[] = {
      {get("/v1/nothing"), 404, "no_such_call"},
      {get("/"), 404, "no_such_call"},
      {get("/v1/echo/x"), 405, "method_not_allowed"},
      {get("/healthz?x=1"), 400, "bad_request"},
      {"GET /healthz HTTP/1.1\r\nOrigin: http://localhost\r\n\r\n", 403, "browser"},
      {"GET /healthz HTTP/1.1\r\nHost: evil.test\r\n\r\n", 403, "wrong_host"},
      {"nonsense\r\n\r\n", 400, "bad_request"},
      {std::string("\x16\x03\x01\0\0", 5) + "\r\n\r\n", 400, "bad_request"},
      {post("/v1/echo/x", "{"), 400, "bad_request"},
      {post("/v1/echo/x", R"({"a":1,"a":2})"), 400, "bad_request"},
      {post("/v1/echo/x", std::string(100, '[')), 400, "bad_request"},
      {post("/v1/echo/x", std::string(kMaxBodyBytes + 1, ' ')), 413, "too_large"},
      {post("/v1/large", std::string(kMaxLargeBodyBytes + 1, ' ')), 413, "too_large"},
      {"GET /healthz HTTP/1.1\r\n" + std::string(100'000, 'x'), 431, "head_too_large"},
      {std::string(1'000'000, 'x'), 414, "target_too_long"},
      {get("/healthz") + get("/healthz"), 400, "bad_request"},
      {post("/v1/echo/x", "{}") + "x", 400, "bad_request"},
  };
  for (const auto& [request, status, code] : cases) {
    const std::string answer = answer_to(api.path(), request);
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 " + std::to_string(status))) << request.substr(0, 60);
    const boost::json::value body = boost::json::parse(body_of(answer));
    EXPECT_EQ(body.at("error").at("code"), code) << request.substr(0, 60);
    EXPECT_NE(body.at("error").at("message"), "");
    EXPECT_EQ(body.at("error").at("request").as_string().size(), 16U);
  }
  EXPECT_THAT(answer_to(api.path(), post("/v1/echo/x", std::string(kMaxBodyBytes - 2, ' ') + "{}")),
              StartsWith("HTTP/1.1 201 "));
  EXPECT_THAT(answer_to(api.path(), post("/v1/large", std::string(kMaxLargeBodyBytes - 2, ' ') + "{}")),
              StartsWith("HTTP/1.1 200 "));
}

TEST(ApiServer, NeverServesASecondRequest) {
  ApiFixture api;
  answer_to(api.path(), get("/v1/later") + get("/healthz"));
  const Fd socket = os::connect_plainly(api.path());
  ASSERT_TRUE(send_plainly(socket.get(), get("/v1/later")));
  (void)send_plainly(socket.get(), get("/healthz"));  // while the first is in work, or later
  read_to_end(socket.get());
  api.stop();
  EXPECT_THAT(api.calls(), Not(Contains(HasSubstr("/healthz"))));
}

TEST(ApiServer, KeepsThreeDescriptorsAndNoMore) {
  ApiFixture api;
  answer_to(api.path(), get("/healthz"));  // so that all is open that stays so
  const int before = open_descriptors();
  for (std::size_t count = 1; count <= 10; ++count) {
    const Fd socket = os::connect_plainly(api.path());
    send_with_descriptors(socket.get(), post("/v1/echo/x", "{}"), count);
    const std::string answer = read_to_end(socket.get());
    if (count <= kMaxDescriptors) {
      EXPECT_THAT(answer, HasSubstr("\"descriptors\":" + std::to_string(count)));
    } else {
      EXPECT_THAT(answer, AllOf(StartsWith("HTTP/1.1 400 "), HasSubstr("At most 3 descriptors")));
    }
  }
  answer_to(api.path(), get("/healthz"));  // by now the last one's end was seen
  EXPECT_EQ(open_descriptors(), before);
}

TEST(ApiServer, CountsTheDescriptorsOfAWholeRequest) {
  ApiFixture api;
  const std::string request = post("/v1/echo/x", "{}");
  for (const std::size_t each : {1U, 2U}) {
    const Fd socket = os::connect_plainly(api.path());
    send_with_descriptors(socket.get(), request.substr(0, 10), each);
    send_with_descriptors(socket.get(), request.substr(10), each);
    EXPECT_THAT(read_to_end(socket.get()), StartsWith(each == 1 ? "HTTP/1.1 201 " : "HTTP/1.1 400 "));
  }
}

TEST(ApiServer, RefusesDescriptorsThatACallDoesNotTake) {
  ApiFixture api;
  const Fd socket = os::connect_plainly(api.path());
  send_with_descriptors(socket.get(), get("/healthz"), 1);
  EXPECT_THAT(read_to_end(socket.get()),
              AllOf(StartsWith("HTTP/1.1 400 "), HasSubstr("at most 0 descriptors")));
}

TEST(ApiServer, CutsARequestThatDoesNotArrive) {
  ApiFixture api({.request = milliseconds(20), .write_idle = milliseconds(20), .linger = milliseconds(20)});
  for (const std::string& half : {std::string(), std::string("G"), get("/healthz").substr(0, 20),
                                  post("/v1/echo/x", "{\"a\":1}").substr(0, 100)}) {
    EXPECT_THAT(answer_to(api.path(), half), AllOf(StartsWith("HTTP/1.1 408 "), HasSubstr("client_timeout")))
        << half;
  }
}

TEST(ApiServer, ForgetsAPeerThatLeavesHalfARequest) {
  ApiFixture api;
  const Fd socket = os::connect_plainly(api.path());
  ASSERT_TRUE(send_plainly(socket.get(), get("/healthz").substr(0, 20)));
  ::shutdown(socket.get(), SHUT_WR);
  EXPECT_EQ(read_to_end(socket.get()), "");
  api.stop();
  EXPECT_THAT(api.calls(), ElementsAre(" 0"));
}

TEST(ApiServer, TellsAHandlerThatItsCallerIsGone) {
  ApiFixture api;
  Fd socket = os::connect_plainly(api.path());
  ASSERT_TRUE(send_plainly(socket.get(), get("/v1/forever")));
  answer_to(api.path(), get("/healthz"));
  socket.reset();
  api.gone().wait();
  api.stop();
  EXPECT_THAT(api.calls(), ElementsAre("GET /healthz 200", "GET /v1/forever 0"));
}

TEST(ApiServer, CutsAStreamThatIsNotRead) {
  ApiFixture api;
  const Fd socket = os::connect_plainly(api.path());
  ASSERT_TRUE(send_plainly(socket.get(), get("/v1/flood")));
  api.gone().wait();
  const std::string answer = read_to_end(socket.get());
  EXPECT_THAT(answer, Not(EndsWith("0\r\n\r\n")));
  EXPECT_LT(answer.size(), kMaxQueuedBytes);
}

TEST(ApiServer, CutsAPeerThatTakesNothing) {
  ApiFixture api({.request = kRequestLimit, .write_idle = milliseconds(20), .linger = milliseconds(20)});
  const Fd slow = os::connect_plainly(api.path());
  ASSERT_TRUE(send_plainly(slow.get(), get("/v1/one_line")));
  api.gone().wait();
  const Fd whole = os::connect_plainly(api.path());
  ASSERT_TRUE(send_plainly(whole.get(), get("/v1/huge")));
  pollfd hung_up{whole.get(), 0, 0};
  EXPECT_EQ(::poll(&hung_up, 1, -1), 1);
  EXPECT_LT(read_to_end(whole.get()).size(), kMaxAnswerBytes);
}

TEST(ApiServer, RefusesPeersUnread) {
  constexpr gid_t kOperators = 23456;
  ApiFixture api({}, {.owner = 4321, .operators = kOperators});
  // The socket's own mode is out of the way here: who may connect is for the server to judge as well.
  ASSERT_EQ(::chmod(api.folder().c_str(), 0711), 0);
  ASSERT_EQ(::chmod((api.folder() + "/run").c_str(), 0755), 0);
  ASSERT_EQ(::chmod(api.path().c_str(), 0666), 0);
  const auto ask = [&] {
    return answer_to(api.path(), get("/healthz")).find("\r\n\r\nok") == std::string::npos ? 1 : 0;
  };
  EXPECT_EQ(ask(), 0) << "root";
  EXPECT_EQ(os::as_user(4321, 4321, ask), 0) << "the owner";
  EXPECT_EQ(os::as_user(os::kStranger, kOperators, ask), 0) << "an operator";
  EXPECT_EQ(os::as_user(os::kStranger, os::kStranger, ask), 1);
  EXPECT_EQ(os::as_user(os::kOverflowUid, kOperators, ask), 1);
  api.stop();
  EXPECT_THAT(api.refused(), ElementsAre(Pair(os::kStranger, HasSubstr("uid 12345 is neither root")),
                                         Pair(os::kOverflowUid, HasSubstr("does not map here"))));
  EXPECT_THAT(api.calls(), ElementsAre("GET /healthz 200", "GET /healthz 200", "GET /healthz 200"));
}

TEST(ApiServer, ServesAfterAThousandConnections) {
  ApiFixture api;
  std::vector<Fd> idle;
  for (int i = 0; i < 1000; ++i) {
    idle.push_back(os::connect_plainly(api.path()));
    ASSERT_TRUE(idle.back()) << i;
  }
  // All but those which the limit lets wait have had their answer, unasked.
  for (std::size_t i = kMaxConnectionsPerUser; i < idle.size(); ++i) {
    EXPECT_THAT(read_to_end(idle[i].get()),
                AllOf(StartsWith("HTTP/1.1 429 "), HasSubstr("Too many connections")))
        << i;
  }
  idle.clear();
  // Each of the others is forgotten when its end is seen, which may be after this one is accepted.
  while (answer_to(api.path(), get("/healthz")).starts_with("HTTP/1.1 429 ")) {
  }
  api.stop();
  EXPECT_THAT(api.calls(), Contains("GET /healthz 200"));
}

// Without a loop: nobody reads, so all that come stay.
class ApiServerLimits : public ::testing::Test {
 protected:
  // Whether a connection of that user was taken.
  bool connect(uid_t uid) {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    clients_.emplace_back(ends[1]);
    const std::size_t before = server_.connections();
    server_.serve(Fd(ends[0]), os::Peer{.pid = 1, .uid = uid, .gid = uid, .groups = {}});
    return server_.connections() > before;
  }

  os::EventLoop loop_;
  std::vector<Fd> clients_;
  std::vector<Answer> held_;
  ApiServer server_{
      loop_,
      {.owner = 500, .operators = 7},
      {{"GET", "/hold",
        [this](const Call&, Answer answer) {
          held_.push_back(std::move(answer));
          loop_.stop();
        }}},
      {.on_peer_refused = nullptr,
       .on_call = [this](const os::Peer&, const std::string&, const std::string&, int) { loop_.stop(); },
       .on_mistake = nullptr}};
};

TEST_F(ApiServerLimits, BoundsTheCallsOfAUser) {
  for (std::size_t i = 0; i <= kMaxCallsPerUser; ++i) {
    ASSERT_TRUE(connect(1000)) << "a call under way is no connection that waits";
    ASSERT_TRUE(send_plainly(clients_.back().get(), get("/hold")));
    ASSERT_TRUE(loop_.run());
  }
  EXPECT_EQ(held_.size(), kMaxCallsPerUser);
  EXPECT_THAT(read_to_end(clients_.back().get()),
              AllOf(StartsWith("HTTP/1.1 429 "), HasSubstr("Too many calls")));
  held_.clear();
  EXPECT_EQ(server_.connections(), 0U);
  ASSERT_TRUE(connect(1000));
  ASSERT_TRUE(send_plainly(clients_.back().get(), get("/hold")));
  ASSERT_TRUE(loop_.run());
  EXPECT_EQ(held_.size(), 1U);
}

TEST_F(ApiServerLimits, LetsNobodyKeepOthersOut) {
  std::size_t taken = 0;
  for (uid_t uid = 1000; uid < 1010; ++uid) {
    for (std::size_t i = 0; i < kMaxConnectionsPerUser + 4; ++i) taken += connect(uid) ? 1 : 0;
  }
  EXPECT_EQ(taken, kMaxConnections);
  for (const uid_t uid : {0U, 500U}) {
    for (std::size_t i = 0; i < kMaxConnectionsPerUser; ++i) EXPECT_TRUE(connect(uid));
    EXPECT_FALSE(connect(uid));
  }
}

}  // namespace
}  // namespace sallyport::control
