#include "control/api_error.h"

#include <boost/json.hpp>

#include "base/text.h"

namespace sallyport::control {
namespace {

constexpr std::size_t kMaxMessageBytes = std::size_t{16} * 1024;

}  // namespace

boost::json::string shown(const std::string& text) {
  std::string lines;
  for (const std::string_view line : split(text, '\n')) {
    if (!lines.empty()) lines += '\n';
    lines += escaped(line, kMaxMessageBytes);
  }
  return boost::json::string(lines);
}

ApiError to_api_error(const Error& error) {
  const ReasonInfo& reason = info(error.reason);
  return ApiError{.status = reason.status,
                  .code = std::string(reason.code),
                  .message = error.detail.empty() ? std::string(reason.sentence) : error.detail,
                  .hint = std::string(reason.advice)};
}

std::string error_json(const ApiError& error, const std::string& request_id) {
  return boost::json::serialize(boost::json::value{{"error",
                                                    {{"code", error.code},
                                                     {"message", shown(error.message)},
                                                     {"hint", shown(error.hint)},
                                                     {"request", request_id}}}}) +
         "\n";
}

}  // namespace sallyport::control
