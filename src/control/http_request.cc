#include "control/http_request.h"

#include <algorithm>
#include <vector>

#include "base/text.h"

namespace sallyport::control {
namespace {

struct Field {
  std::string name;  // lower case
  std::string_view value;
};

std::unexpected<ApiError> bad(std::string message, std::string hint = "") {
  return refuse(400, "bad_request", std::move(message), std::move(hint));
}

constexpr bool is_plain(char c) {
  return is_alnum(c) || c == '.' || c == '_' || c == '-';
}

ApiResult<std::vector<Field>> parse_fields(std::string_view head) {
  std::vector<Field> fields;
  std::size_t line_end = head.find("\r\n");
  for (;;) {
    const std::size_t start = line_end + 2;
    line_end = head.find("\r\n", start);
    if (line_end == start) return fields;
    const std::string_view line = head.substr(start, line_end - start);
    const std::size_t colon = line.find(':');
    // RFC 9112, 5.1: no space before the colon. A folded line (5.2) has no name, and falls here too.
    if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) {
      return bad("a header field is malformed: '" + escaped(line, 64) + "'");
    }
    const std::string_view value = trimmed(line.substr(colon + 1));
    if (!std::ranges::all_of(value, is_field_value_char))
      return bad("a header field has a control character");
    fields.push_back({lowered(line.substr(0, colon)), value});
  }
}

// "" when there is none.
ApiResult<std::string_view> single(const std::vector<Field>& fields, std::string_view name) {
  std::string_view found;
  int count = 0;
  for (const Field& field : fields) {
    if (field.name != name) continue;
    if (++count > 1) return bad("the header field '" + std::string(name) + "' comes twice");
    if (field.value.empty()) return bad("the header field '" + std::string(name) + "' is empty");
    found = field.value;
  }
  return found;
}

// A page in a browser cannot reach a Unix socket; a program that forwards connections to one can be reached
// by it. A browser says where its page came from (Fetch, "Origin"), and what host it believes to speak to.
ApiResult<void> check_no_browser(const std::vector<Field>& fields) {
  for (const Field& field : fields) {
    if (field.name == "origin" || field.name.starts_with("sec-fetch-")) {
      return refuse(403, "browser", "Browsers are not served here.",
                    "Use `sallyport`, or curl --unix-socket.");
    }
  }
  const auto host = single(fields, "host");
  if (!host) return std::unexpected(host.error());
  if (!host->empty() && *host != "sallyport" && *host != "localhost") {
    return refuse(403, "wrong_host", "The Host is neither \"sallyport\" nor \"localhost\".",
                  "Ask for http://localhost/v1/... by the socket.");
  }
  return {};
}

ApiResult<std::size_t> body_bytes(const HttpRequest& request, const std::vector<Field>& fields) {
  const auto coding = single(fields, "transfer-encoding");
  const auto length = single(fields, "content-length");
  const auto type = single(fields, "content-type");
  const auto expect = single(fields, "expect");
  for (const auto* each : {&coding, &length, &type, &expect}) {
    if (!*each) return std::unexpected(each->error());
  }
  if (!expect->empty())
    return refuse(417, "expectation_failed", "Expect is not understood; just send the body.");
  if (!coding->empty()) return refuse(411, "length_required", "A body needs a Content-Length.");
  if (length->empty()) return 0;
  const auto bytes = parse_decimal(*length);
  if (!bytes) return bad("Content-Length is not a number");
  if (*bytes == 0) return 0;
  if (request.method == "GET" || request.method == "DELETE") return bad(request.method + " has no body");
  if (*type != "application/json") {
    return refuse(415, "bad_content_type", "The body's Content-Type must be application/json.");
  }
  return *bytes;
}

ApiResult<void> parse_query(std::string_view text, HttpRequest& request) {
  for (const std::string_view pair : split(text, '&')) {
    const std::size_t equals = pair.find('=');
    const std::string_view name = pair.substr(0, equals);
    const std::string_view value = equals == std::string_view::npos ? "" : pair.substr(equals + 1);
    if (name.empty() || value.empty() || !std::ranges::all_of(name, is_plain) ||
        !std::ranges::all_of(value, is_plain)) {
      return bad("the query is not a list of name=value: '" + escaped(text, 64) + "'");
    }
    if (!request.query.emplace(name, value).second)
      return bad("the query has '" + std::string(name) + "' twice");
    if (request.query.size() > kMaxQueryFields) return bad("the query has too many fields");
  }
  return {};
}

ApiResult<void> parse_target(std::string_view target, HttpRequest& request) {
  const std::size_t mark = target.find('?');
  request.path = target.substr(0, mark);
  const auto in_path = [](char c) { return c == '/' || is_plain(c); };
  if (!std::ranges::all_of(request.path, in_path)) return bad("the path has a character that none here has");
  if (mark == std::string_view::npos) return {};
  return parse_query(target.substr(mark + 1), request);
}

}  // namespace

ApiResult<HttpRequest> parse_http_request(std::string_view head) {
  // The scanner has proved it: METHOD SP /target SP HTTP/1.1
  const auto words = split(head.substr(0, head.find("\r\n")), ' ');
  HttpRequest request;
  request.method = words.at(0);
  if (auto ok = parse_target(words.at(1), request); !ok) return std::unexpected(ok.error());
  const auto fields = parse_fields(head);
  if (!fields) return std::unexpected(fields.error());
  if (auto ok = check_no_browser(*fields); !ok) return std::unexpected(ok.error());
  auto bytes = body_bytes(request, *fields);
  if (!bytes) return std::unexpected(std::move(bytes).error());
  request.body_bytes = *bytes;
  return request;
}

}  // namespace sallyport::control
