#include "upstream/http_exchange.h"

#include <gtest/gtest.h>

#include <string>

namespace sallyport::upstream {
namespace {

Request request() {
  const auto host = policy::HostName::parse("forge.test").value();
  return {.route = policy::parse_git_route(host, policy::HostKind::Generic, "GET",
                                           "/acme/widget/info/refs?service=git-upload-pack")
                       .value()};
}

TEST(RequestHead, NamesAnUnusualPortInHost) {
  Request asked = request();
  asked.port = 8443;
  const auto head = request_head(asked);
  ASSERT_TRUE(head);
  EXPECT_NE(head->find("\r\nHost: forge.test:8443\r\n"), std::string::npos);
}

TEST(RequestHead, RefusesHeadersThatMayNotTravel) {
  for (const Header& header :
       {Header{"authorization", "x"}, Header{"content-length", "1"}, Header{"transfer-encoding", "chunked"},
        Header{"host", "x"}, Header{"User-Agent", "x"}, Header{"accept", "a\r\nb: c"},
        Header{"accept", "a\nb"}, Header{"accept", std::string("a\0b", 3)}, Header{"range", "bytes=0-1"}}) {
    Request asked = request();
    asked.headers = {header};
    const auto head = request_head(asked);
    ASSERT_FALSE(head) << header.name;
    EXPECT_EQ(head.error().reason, Reason::Internal);
  }
}

}  // namespace
}  // namespace sallyport::upstream
