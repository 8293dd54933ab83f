// The head of a request to the control API, read as strictly as a sandbox's (http/request_head.h), but for
// its Host, which names no host at all here. Any local user who gets as far may choose these bytes.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "control/api_error.h"

namespace sallyport::control {

inline constexpr std::size_t kMaxQueryFields = 16;

struct HttpRequest {
  std::string method;
  std::string path;                          // plain: letters, digits and "/._-", nothing encoded
  std::map<std::string, std::string> query;  // likewise
  std::size_t body_bytes = 0;
};

// `head` is all up to and including the blank line, as http::HeadScanner found it.
ApiResult<HttpRequest> parse_http_request(std::string_view head);

}  // namespace sallyport::control
