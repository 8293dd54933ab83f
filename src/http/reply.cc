#include "http/reply.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"

namespace sallyport::http {
namespace {

struct Phrase {
  int status;
  std::string_view phrase;
};

// RFC 9110, 15, and RFC 6585.
constexpr std::array kPhrases{
    Phrase{100, "Continue"},
    Phrase{200, "OK"},
    Phrase{201, "Created"},
    Phrase{202, "Accepted"},
    Phrase{203, "Non-Authoritative Information"},
    Phrase{204, "No Content"},
    Phrase{205, "Reset Content"},
    Phrase{206, "Partial Content"},
    Phrase{300, "Multiple Choices"},
    Phrase{301, "Moved Permanently"},
    Phrase{302, "Found"},
    Phrase{303, "See Other"},
    Phrase{304, "Not Modified"},
    Phrase{307, "Temporary Redirect"},
    Phrase{308, "Permanent Redirect"},
    Phrase{400, "Bad Request"},
    Phrase{401, "Unauthorized"},
    Phrase{402, "Payment Required"},
    Phrase{403, "Forbidden"},
    Phrase{404, "Not Found"},
    Phrase{405, "Method Not Allowed"},
    Phrase{406, "Not Acceptable"},
    Phrase{408, "Request Timeout"},
    Phrase{409, "Conflict"},
    Phrase{410, "Gone"},
    Phrase{411, "Length Required"},
    Phrase{412, "Precondition Failed"},
    Phrase{413, "Content Too Large"},
    Phrase{414, "URI Too Long"},
    Phrase{415, "Unsupported Media Type"},
    Phrase{416, "Range Not Satisfiable"},
    Phrase{417, "Expectation Failed"},
    Phrase{421, "Misdirected Request"},
    Phrase{422, "Unprocessable Content"},
    Phrase{426, "Upgrade Required"},
    Phrase{429, "Too Many Requests"},
    Phrase{431, "Request Header Fields Too Large"},
    Phrase{500, "Internal Server Error"},
    Phrase{501, "Not Implemented"},
    Phrase{502, "Bad Gateway"},
    Phrase{503, "Service Unavailable"},
    Phrase{504, "Gateway Timeout"},
};

}  // namespace

std::string_view reason_phrase(int status) {
  const auto* row = std::ranges::find(kPhrases, status, &Phrase::status);
  return row == kPhrases.end() ? "" : row->phrase;
}

std::string refusal_text(const Refusal& refusal) {
  std::string text = "sallyport: ";
  text += info(refusal.reason).sentence;
  text += '\n';
  if (!refusal.particulars.empty()) text += refusal.particulars + '\n';
  if (const std::string_view advice = info(refusal.reason).advice; !advice.empty()) {
    text += advice;
    text += '\n';
  }
  if (!refusal.request_id.empty()) text += "request " + refusal.request_id + '\n';
  return text;
}

std::string refusal_json(const Refusal& refusal) {
  const ReasonInfo& row = info(refusal.reason);
  std::string json = "{\"error\":";
  append_json_text(json, row.code);
  json += ",\"status\":" + std::to_string(row.status);
  for (const auto& [key, value] : {std::pair<std::string_view, std::string_view>{"message", row.sentence},
                                   {"particulars", refusal.particulars},
                                   {"advice", row.advice},
                                   {"request", refusal.request_id}}) {
    json += ',';
    append_json_text(json, key);
    json += ':';
    append_json_text(json, value);
  }
  return json += "}\n";
}

net::Task<Status> refuse(Connection& connection, Refusal refusal) {
  if (ends_connection(refusal.reason)) connection.close_after_response();
  const int status = info(refusal.reason).status;
  if (connection.client_wants_json()) {
    co_return co_await reply(connection, status, "application/json", refusal_json(refusal));
  }
  co_return co_await reply(connection, status, "text/plain", refusal_text(refusal));
}

net::Task<Status> reply(Connection& connection, int status, std::string content_type, std::string body) {
  if (!connection.body_finished()) connection.close_after_response();
  std::vector<Field> fields{{"content-type", std::move(content_type)}, {"cache-control", "no-store"}};
  if (status == 429 || status == 503)
    fields.push_back({"retry-after", std::to_string(connection.retry_after().count())});
  if (auto begun = co_await connection.begin_response(status, std::move(fields), body.size()); !begun) {
    co_return begun;
  }
  if (auto written = co_await connection.write_body(body); !written) co_return written;
  co_return co_await connection.end_response();
}

}  // namespace sallyport::http
