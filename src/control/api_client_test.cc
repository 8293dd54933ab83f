#include "control/api_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "control/api_fixture.h"

namespace sallyport::control {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

TEST(ApiClient, CallsAndPassesDescriptors) {
  ApiFixture api;
  const ApiClient client(api.path(), 0);
  EXPECT_EQ(client.call({"GET", "/v1/version"})->at("api"), "v1");
  EXPECT_EQ(client.text({"GET", "/healthz"}), "ok\n");
  const auto echoed = client.call({.method = "POST",
                                   .target = "/v1/echo/x?tail=5",
                                   .body = boost::json::value{{"name", "ä"}},
                                   .descriptors = {0, 1, 2}});
  ASSERT_TRUE(echoed) << echoed.error().detail;
  EXPECT_EQ(echoed->at("descriptors"), 3);
  EXPECT_EQ(echoed->at("body").at("name"), "ä");
  EXPECT_EQ(client.text({"GET", "/v1/huge"})->size(), kMaxAnswerBytes);
}

TEST(ApiClient, ReadsLinesToTheirEnd) {
  ApiFixture api;
  const ApiClient client(api.path(), 0);
  auto stream = client.stream({"GET", "/v1/lines"});
  ASSERT_TRUE(stream) << stream.error().detail;
  for (int i = 0; i < 3; ++i) {
    const auto step = stream->next();
    ASSERT_TRUE(step);
    ASSERT_EQ(step->kind, ApiStream::Step::Kind::Line);
    EXPECT_EQ(step->line.at("line"), i);
  }
  EXPECT_EQ(stream->next()->kind, ApiStream::Step::Kind::End);
  EXPECT_EQ(stream->next()->kind, ApiStream::Step::Kind::End);
}

TEST(ApiClient, TellsACutStreamFromItsEndAndFromNothingYet) {
  ApiFixture api;
  const ApiClient client(api.path(), 0);
  auto cut = client.stream({"GET", "/v1/cut"});
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->next()->kind, ApiStream::Step::Kind::Line);
  EXPECT_EQ(cut->next().error().reason, Reason::UpstreamTruncated);
  auto open = client.stream({"GET", "/v1/one_line"});
  ASSERT_TRUE(open);
  EXPECT_EQ(open->next()->kind, ApiStream::Step::Kind::Line);
  EXPECT_EQ(open->next(milliseconds(0))->kind, ApiStream::Step::Kind::NotYet);
}

TEST(ApiClient, SaysWhatTheDaemonRefused) {
  ApiFixture api;
  const ApiClient client(api.path(), 0);
  const auto refused = client.call({"GET", "/v1/refused"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason, Reason::RepoNotGranted);
  EXPECT_EQ(refused.error().detail, "not \\xff yours");
  const auto unready = client.text({"GET", "/readyz"});
  ASSERT_FALSE(unready);
  EXPECT_EQ(unready.error().detail,
            "the vault is not up\nIt is started again by itself; its log says why it died.");
  const auto stream = client.stream({"GET", "/v1/nothing"});
  ASSERT_FALSE(stream);
  EXPECT_THAT(stream.error().detail, HasSubstr("There is no call /v1/nothing."));
  // A body so large that it is refused before it is sent.
  const auto large = client.call({"POST", "/v1/echo/x", boost::json::value(std::string(2'000'000, 'x'))});
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().reason, Reason::TooLarge);
}

TEST(ApiClient, SaysHowToStartADaemon) {
  const os::PrivateFolder room;
  const auto own = ApiClient(room / "run/control.sock", 0).call({"GET", "/healthz"});
  ASSERT_FALSE(own);
  EXPECT_EQ(own.error().reason, Reason::UpstreamUnreachable);
  EXPECT_THAT(own.error().detail, HasSubstr("sallyportd is not running"));
  EXPECT_THAT(own.error().detail, HasSubstr("start it with `sallyport gateway start`"));
}

TEST(ApiClient, DoesNotWaitForever) {
  ApiFixture api;
  const auto late = ApiClient(api.path(), 0).call({"GET", "/v1/forever"}, milliseconds(20));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().reason, Reason::UpstreamTimeout);
}

// Answers of something that is no daemon of ours, whatever it is.
TEST(ApiClient, RefusesAnswersThatAreNone) {
  const struct {
    std::string answer;
    Reason reason;
  } cases[] = {
      {"", Reason::UpstreamTruncated},
      {"HTTP/1.1 200 \r\nContent-Le", Reason::UpstreamTruncated},
      {"HTTP/1.1 200 \r\nContent-Length: 10\r\n\r\n{}", Reason::UpstreamTruncated},
      {"SSH-2.0-x\r\n\r\n", Reason::UpstreamMalformed},
      {"HTTP/1.1 99 \r\n\r\n", Reason::UpstreamMalformed},
      {"HTTP/1.1 200 \r\nContent-Length: 99999999999\r\n\r\n", Reason::UpstreamMalformed},
      {"HTTP/1.1 200 \r\nContent-Length: x\r\n\r\n", Reason::UpstreamMalformed},
      {"HTTP/1.1 200 \r\nContent-Length: 1\r\n\r\n{}", Reason::UpstreamMalformed},
      {"HTTP/1.1 200 \r\nContent-Length: 1\r\n\r\n{", Reason::UpstreamMalformed},
      {"HTTP/1.1 200 \r\nTransfer-Encoding: chunked\r\n\r\n", Reason::UpstreamMalformed},
      {"HTTP/1.1 500 \r\nContent-Length: 4\r\n\r\noops", Reason::UpstreamMalformed},
      {"HTTP/1.1 500 \r\nContent-Length: 11\r\n\r\n{\"error\":1}", Reason::UpstreamMalformed},
      {std::string(100'000, 'x'), Reason::UpstreamMalformed},
  };
  for (const auto& [answer, reason] : cases) {
    const os::PrivateFolder room;
    ASSERT_EQ(::mkdir((room / "run").c_str(), 0700), 0);
    const std::string path = room / "run/control.sock";
    const Fd listener = os::listen_at(path);
    ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
    std::thread impostor([&] {
      const Fd connection(::accept(listener.get(), nullptr, nullptr));
      char request[1024];
      EXPECT_GT(::recv(connection.get(), request, sizeof request, 0), 0);
      send_plainly(connection.get(), answer);
    });
    const auto result = ApiClient(path, 0).call({"GET", "/healthz"});
    impostor.join();
    ASSERT_FALSE(result) << answer.substr(0, 80);
    EXPECT_EQ(result.error().reason, reason) << answer.substr(0, 80);
  }
}

}  // namespace
}  // namespace sallyport::control
