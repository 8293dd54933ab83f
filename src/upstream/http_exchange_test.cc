#include "upstream/http_exchange.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace sallyport::upstream {
namespace {

Request request() {
  return {.host = policy::HostName::parse("forge.test").value(),
          .method = "GET",
          .target = "/acme/widget/info/refs?service=git-upload-pack"};
}

Reason failure(const Request& asked, Carries carries) {
  const auto head = request_head(asked, carries);
  return head ? Reason::None : head.error().reason;
}

TEST(RequestHead, NamesAnUnusualPortInHost) {
  Request asked = request();
  const struct {
    Scheme scheme;
    std::uint16_t port;
    const char* host;
  } cases[] = {
      {Scheme::Https, 443, "Host: forge.test"},    {Scheme::Https, 8443, "Host: forge.test:8443"},
      {Scheme::Https, 80, "Host: forge.test:80"},  {Scheme::Http, 80, "Host: forge.test"},
      {Scheme::Http, 443, "Host: forge.test:443"},
  };
  for (const auto& c : cases) {
    asked.scheme = c.scheme;
    asked.port = c.port;
    const auto head = request_head(asked, Carries::Nothing);
    ASSERT_TRUE(head);
    EXPECT_NE(head->find(std::string("\r\n") + c.host + "\r\n"), std::string::npos) << *head;
  }
}

TEST(RequestHead, RefusesHeadersThatMayNotTravelBesideACredential) {
  for (const Header& header :
       {Header{"authorization", "x"}, Header{"content-length", "1"}, Header{"transfer-encoding", "chunked"},
        Header{"host", "x"}, Header{"User-Agent", "x"}, Header{"accept", "a\r\nb: c"},
        Header{"accept", "a\nb"}, Header{"accept", std::string("a\0b", 3)}, Header{"range", "bytes=0-1"}}) {
    Request asked = request();
    asked.headers = {header};
    EXPECT_EQ(failure(asked, Carries::Credential), Reason::Internal) << header.name;
  }
}

TEST(RequestHead, WithoutACredentialEveryFieldOfTheRequestsOwnMayTravel) {
  Request asked = request();
  asked.headers = {{"authorization", "Bearer x"},
                   {"cookie", "a=b"},
                   {"range", "bytes=0-1"},
                   {"cookie", "c=d"},
                   {"x-empty", ""},
                   {"x_odd.name", "caf\xc3\xa9"}};
  const auto head = request_head(asked, Carries::Nothing);
  ASSERT_TRUE(head) << head.error().detail;
  EXPECT_NE(head->find("\r\nauthorization: Bearer x\r\ncookie: a=b\r\nrange: bytes=0-1\r\ncookie: c=d\r\n"),
            std::string::npos);
}

TEST(RequestHead, NoOneSendsFramingOrFieldsOfOneConnection) {
  for (const Header& header : {Header{"host", "x"},
                               Header{"content-length", "1"},
                               Header{"transfer-encoding", "chunked"},
                               Header{"connection", "close"},
                               Header{"keep-alive", "1"},
                               Header{"te", "trailers"},
                               Header{"trailer", "x"},
                               Header{"upgrade", "h2c"},
                               Header{"http2-settings", "x"},
                               Header{"expect", "100-continue"},
                               Header{"proxy-authorization", "x"},
                               Header{"proxy-connection", "x"},
                               Header{"Cookie", "x"},
                               Header{"", "x"},
                               Header{"a b", "x"},
                               Header{"a:", "x"},
                               Header{"cookie", "a\r\nb: c"},
                               Header{"cookie", "a\nb"},
                               Header{"cookie", std::string("a\0b", 3)},
                               Header{"cookie", "a\x7f"}}) {
    Request asked = request();
    asked.headers = {header};
    EXPECT_EQ(failure(asked, Carries::Nothing), Reason::Internal) << header.name;
  }
}

TEST(RequestHead, ACredentialNeverGoesInTheClear) {
  Request asked = request();
  asked.scheme = Scheme::Http;
  asked.port = 80;
  EXPECT_EQ(failure(asked, Carries::Credential), Reason::Internal);
  EXPECT_EQ(failure(asked, Carries::Nothing), Reason::None);
  asked.port = 443;
  EXPECT_EQ(failure(asked, Carries::Credential), Reason::Internal);
}

TEST(RequestHead, RefusesAMethodOrTargetThatIsNoneOfARequests) {
  using Change = std::function<void(Request&)>;
  for (const Change& change : std::vector<Change>{
           [](Request& r) { r.method = "CONNECT"; }, [](Request& r) { r.method = "GET /"; },
           [](Request& r) { r.method = ""; }, [](Request& r) { r.target = ""; },
           [](Request& r) { r.target = "a"; }, [](Request& r) { r.target = "/a b"; },
           [](Request& r) { r.target = "/a\r\nb"; }, [](Request& r) { r.target = "http://other.test/"; }}) {
    Request asked = request();
    change(asked);
    EXPECT_EQ(failure(asked, Carries::Nothing), Reason::Internal) << asked.method << ' ' << asked.target;
  }
}

TEST(RequestHead, AsksForAnUpgradeOnlyWithoutCredentialAndBody) {
  Request asked = request();
  asked.upgrade = "websocket";
  const auto head = request_head(asked, Carries::Nothing);
  ASSERT_TRUE(head) << head.error().detail;
  EXPECT_TRUE(head->ends_with("\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n")) << *head;
  EXPECT_EQ(failure(asked, Carries::Credential), Reason::Internal);
  asked.body = BodyKind::Open;
  EXPECT_EQ(failure(asked, Carries::Nothing), Reason::Internal);
  asked.body = BodyKind::None;
  asked.upgrade = "a\r\nb";
  EXPECT_EQ(failure(asked, Carries::Nothing), Reason::Internal);
}

}  // namespace
}  // namespace sallyport::upstream
