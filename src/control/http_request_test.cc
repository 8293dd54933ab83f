#include "control/http_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "http/request_head.h"

namespace sallyport::control {
namespace {

using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

// As HttpConnection does it.
ApiResult<HttpRequest> read(const std::string& head) {
  http::HeadScanner scanner;
  const auto size = scanner.scan(head);
  if (!size) return std::unexpected(to_api_error(size.error()));
  if (!*size) return refuse(0, "more", "more is to come");
  return parse_http_request(std::string_view(head).substr(0, **size));
}

TEST(ControlRequest, IsReadWithItsQuery) {
  const auto request =
      read("GET /v1/sessions/a-b_c.d/logs?follow=true&tail=10 HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->method, "GET");
  EXPECT_EQ(request->path, "/v1/sessions/a-b_c.d/logs");
  EXPECT_THAT(request->query, UnorderedElementsAre(Pair("follow", "true"), Pair("tail", "10")));
  EXPECT_EQ(request->body_bytes, 0U);
}

TEST(ControlRequest, NeedsNoHost) {
  EXPECT_TRUE(read("GET /healthz HTTP/1.1\r\n\r\n"));
  EXPECT_TRUE(read("GET /healthz HTTP/1.1\r\nHost: sallyport\r\n\r\n"));
}

TEST(ControlRequest, TellsItsBodysLength) {
  const auto request =
      read("POST /v1/x HTTP/1.1\r\ncontent-type: application/json\r\nContent-Length: 12\r\n\r\n");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->body_bytes, 12U);
  EXPECT_EQ(read("POST /v1/x HTTP/1.1\r\nContent-Length: 0\r\n\r\n")->body_bytes, 0U);
}

TEST(ControlRequest, IsRefusedWithASentence) {
  const struct {
    std::string head;
    int status;
    const char* why;
  } cases[] = {
      {"GET /v1/x HTTP/1.1\r\nOrigin: http://localhost\r\n\r\n", 403, "Browsers"},
      {"GET /v1/x HTTP/1.1\r\nORIGIN: null\r\n\r\n", 403, "Browsers"},
      {"GET /v1/x HTTP/1.1\r\nSec-Fetch-Mode: cors\r\n\r\n", 403, "Browsers"},
      {"GET /v1/x HTTP/1.1\r\nHost: evil.test\r\n\r\n", 403, "The Host is neither"},
      {"GET /v1/x HTTP/1.1\r\nHost: localhost:8080\r\n\r\n", 403, "The Host is neither"},
      {"GET /v1/x HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", 400, "'host' comes twice"},
      {"GET /v1/x HTTP/1.1\r\nHost:\r\n\r\n", 400, "'host' is empty"},
      {"GET http://localhost/v1/x HTTP/1.1\r\n\r\n", 400, "origin-form"},
      {"GET /v1/../x%2e HTTP/1.1\r\n\r\n", 400, "a character that none here has"},
      {"GET /v1/x;y HTTP/1.1\r\n\r\n", 400, "a character that none here has"},
      {"GET /v1/x? HTTP/1.1\r\n\r\n", 400, "not a list of name=value"},
      {"GET /v1/x?a HTTP/1.1\r\n\r\n", 400, "not a list of name=value"},
      {"GET /v1/x?a=%31 HTTP/1.1\r\n\r\n", 400, "not a list of name=value"},
      {"GET /v1/x?a=1&a=2 HTTP/1.1\r\n\r\n", 400, "has 'a' twice"},
      {"GET /v1/x HTTP/1.0\r\n\r\n", 400, "version is not HTTP/1.1"},
      {"get /v1/x HTTP/1.1\r\n\r\n", 400, "unknown method"},
      {"CONNECT localhost:80 HTTP/1.1\r\n\r\n", 400, "unknown method"},
      {"GET /v1/x HTTP/1.1\nHost: localhost\n\n", 400, "CR or LF"},
      {"GET /v1/x HTTP/1.1\r\nHost : localhost\r\n\r\n", 400, "malformed"},
      {"GET /v1/x HTTP/1.1\r\nA: b\r\n c\r\n\r\n", 400, "malformed"},
      {std::string("GET /v1/x HTTP/1.1\r\nA: b") + '\0' + "c\r\n\r\n", 400, "control character"},
      {"GET /v1/x HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 1\r\n\r\n", 400,
       "GET has no body"},
      {"POST /v1/x HTTP/1.1\r\nContent-Length: 1\r\n\r\n", 415, "must be application/json"},
      {"POST /v1/x HTTP/1.1\r\nContent-Type: text/plain\r\nContent-Length: 1\r\n\r\n", 415,
       "must be application/json"},
      {"POST /v1/x HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", 400, "comes twice"},
      {"POST /v1/x HTTP/1.1\r\nContent-Length: +1\r\n\r\n", 400, "not a number"},
      {"POST /v1/x HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n", 400, "not a number"},
      {"POST /v1/x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 411, "Content-Length"},
      {"POST /v1/x HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n", 411,
       "Content-Length"},
      {"POST /v1/x HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n", 417, "Expect"},
      {"GET /" + std::string(5000, 'a') + " HTTP/1.1\r\n\r\n", 414, ""},
      {"GET /v1/x HTTP/1.1\r\nA: " + std::string(9000, 'a') + "\r\n\r\n", 431, ""},
  };
  for (const auto& [head, status, why] : cases) {
    const auto request = read(head);
    ASSERT_FALSE(request) << head;
    EXPECT_EQ(request.error().status, status) << head;
    EXPECT_THAT(request.error().message, HasSubstr(why)) << head;
  }
  std::string many = "GET /v1/x?a0=0";
  for (int i = 1; i <= 16; ++i) many += "&a" + std::to_string(i) + "=1";
  EXPECT_THAT(read(many + " HTTP/1.1\r\n\r\n").error().message, HasSubstr("too many fields"));
}

}  // namespace
}  // namespace sallyport::control
