#include "egress/request_fields.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "base/text.h"

namespace sallyport::egress {
namespace {

constexpr std::array<std::string_view, 20> kDropped{
    "connection",
    "content-length",
    "expect",
    "forwarded",
    "host",
    "http2-settings",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "true-client-ip",
    "upgrade",
    "via",
    "x-client-ip",
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "x-original-url",
    "x-real-ip",
    "x-rewrite-url",
};
constexpr std::array<std::string_view, 2> kDroppedPrefixes{"proxy-", "x-forwarded-"};

constexpr std::array<std::string_view, 10> kCredentials{
    "api-key",   "authorization",  "cookie",       "deploy-token",  "job-token",
    "x-api-key", "x-access-token", "x-auth-token", "private-token", "x-goog-api-key",
};

std::string folded(std::string_view name) {
  std::string out = lowered(name);
  std::ranges::replace(out, '_', '-');
  return out;
}

// The options of all Connection fields. parse_request_head() has seen that they are tokens.
std::vector<std::string> connection_options(const http::RequestHead& head) {
  std::vector<std::string> options;
  for (const http::Field& field : head.fields) {
    if (field.name != "connection") continue;
    for (const std::string_view option : split(field.value, ',')) options.push_back(folded(trimmed(option)));
  }
  return options;
}

bool contains(const auto& list, std::string_view name) {
  return std::ranges::find(list, name) != std::ranges::end(list);
}

bool is_base64_char(char c) {
  return is_alnum(c) || c == '+' || c == '/';
}

// 16 bytes: 22 characters and their padding.
bool is_websocket_key(std::string_view key) {
  return key.size() == 24 && key.ends_with("==") && std::ranges::all_of(key.substr(0, 22), is_base64_char);
}

// The value of the only field of that name, else "".
std::string_view only(const http::RequestHead& head, std::string_view name) {
  return head.single(name).value_or(std::string_view{});
}

}  // namespace

std::vector<upstream::Header> forwarded_fields(const http::RequestHead& head, OwnCredentials own) {
  const std::vector<std::string> named = connection_options(head);
  std::vector<upstream::Header> forwarded;
  for (const http::Field& field : head.fields) {
    const std::string name = folded(field.name);
    const bool dropped =
        contains(named, name) || contains(kDropped, name) ||
        std::ranges::any_of(kDroppedPrefixes, [&](std::string_view p) { return name.starts_with(p); }) ||
        (own == OwnCredentials::Drop && contains(kCredentials, name));
    if (!dropped) forwarded.push_back({field.name, field.value});
  }
  return forwarded;
}

bool asks_for_websocket(const http::RequestHead& head) {
  return head.method == "GET" && head.body == http::BodyKind::None &&
         head.persistence == http::Persistence::KeepAlive && contains(connection_options(head), "upgrade") &&
         equals_ignoring_case(only(head, "upgrade"), "websocket") &&
         only(head, "sec-websocket-version") == "13" && is_websocket_key(only(head, "sec-websocket-key"));
}

}  // namespace sallyport::egress
