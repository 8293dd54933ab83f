#include "upstream/resumption.h"

#include <gtest/gtest.h>

#include "upstream/connector_fixture.h"

namespace sallyport::upstream {
namespace {

using namespace test;

constexpr std::string_view kOkAndClose =
    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";

TEST(Resumption, KeepsKeysApartAndForgetsTheOneThatWasNotAskedForLongest) {
  const auto key = [](std::string credential) {
    return PoolKey{net::test::host("forge.test"), 443, std::move(credential)};
  };
  Resumption resumption;
  const auto first = resumption.of(key("0"));
  EXPECT_EQ(resumption.of(key("0")), first);
  EXPECT_NE(resumption.of(key("1")), first);
  PoolKey elsewhere = key("0");
  elsewhere.port = 8443;
  EXPECT_NE(resumption.of(elsewhere), first);
  elsewhere = key("0");
  elsewhere.host = net::test::host("other.test");
  EXPECT_NE(resumption.of(elsewhere), first);

  for (std::size_t i = 0; i < kMaxResumedKeys; ++i) {
    (void)resumption.of(key("0"));
    (void)resumption.of(key("more " + std::to_string(i)));
  }
  EXPECT_EQ(resumption.size(), kMaxResumedKeys);
  EXPECT_EQ(resumption.of(key("0")), first);
  resumption.drop_credential("0");
  EXPECT_NE(resumption.of(key("0")), first);
}

class ResumingConnector : public ConnectorTest {
 protected:
  void SetUp() override {
    ConnectorTest::SetUp();
    server.serve = [this](net::Stream& stream, int) { return answer_once(stream, kOkAndClose, true); };
  }
};

TEST_F(ResumingConnector, ResumesTheSessionOfTheConnectionBefore) {
  for (int i = 0; i < 3; ++i) EXPECT_EQ(get().body, "ok");
  EXPECT_EQ(server.connections, 3);
  EXPECT_EQ(server.resumed, 2);
}

TEST_F(ResumingConnector, NeverResumesAnotherCredentialsSession) {
  EXPECT_EQ(get(credential("a", "Authorization: a")).body, "ok");
  EXPECT_EQ(get(credential("b", "Authorization: b")).body, "ok");
  EXPECT_EQ(get().body, "ok");
  EXPECT_EQ(server.resumed, 0);
  EXPECT_EQ(get(credential("a", "Authorization: a")).body, "ok");
  EXPECT_EQ(server.resumed, 1);
}

TEST_F(ResumingConnector, NeverResumesAfterTheCredentialWasReplaced) {
  EXPECT_EQ(get(credential("a", "Authorization: a")).body, "ok");
  connector->drop_credential("a");
  EXPECT_EQ(get(credential("a", "Authorization: A")).body, "ok");
  EXPECT_EQ(server.resumed, 0);
}

// Two hosts of the grant lead to one server, whose certificate names the first alone.
TEST_F(ResumingConnector, NeverResumesForAnotherHostWhatWasVerifiedForOne) {
  EXPECT_EQ(get().body, "ok");
  EXPECT_EQ(open_failure(request(BodyKind::None, 0, "other.test")), Reason::UpstreamTls);
  EXPECT_EQ(open_failure(request(BodyKind::None, 0, "other.test")), Reason::UpstreamTls);
  EXPECT_EQ(server.resumed, 0);
}

TEST_F(ResumingConnector, NeverSharesASessionBetweenTwoConnectorsOfTheSameHost) {
  EXPECT_EQ(get().body, "ok");
  make_connector({});  // as another session's processes have
  EXPECT_EQ(get().body, "ok");
  EXPECT_EQ(server.resumed, 0);
}

}  // namespace
}  // namespace sallyport::upstream
