// What a call of the control API is refused with: a status, a code for machines, a sentence for people, and
// what to do about it. docs/control-api.md shows the shape.
#pragma once

#include <boost/json/string.hpp>
#include <expected>
#include <string>

#include "base/result.h"

namespace sallyport::control {

struct ApiError {
  int status = 500;
  std::string code;
  std::string message;
  std::string hint = "";  // "" where the message says enough
};

template <class T>
using ApiResult = std::expected<T, ApiError>;

inline std::unexpected<ApiError> refuse(int status, std::string code, std::string message,
                                        std::string hint = "") {
  return std::unexpected(ApiError{status, std::move(code), std::move(message), std::move(hint)});
}

// The code, status and advice of the reason; `detail` as the message where there is one: who is served here
// is an operator, and may know the particulars.
ApiError to_api_error(const Error& error);

// A text that may quote what others chose, in any encoding: JSON is UTF-8.
boost::json::string shown(const std::string& text);

// {"error": {"code", "message", "hint", "request"}}
std::string error_json(const ApiError& error, const std::string& request_id);

}  // namespace sallyport::control
