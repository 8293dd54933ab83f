// Any bytes as a request to a proxy: what is accepted, written again from its parts, reads as the same
// request.

#include <cstdint>
#include <cstdlib>
#include <string>

#include "http/limits.h"
#include "http/request_head.h"

using namespace sallyport;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

std::string serialised(const http::RequestHead& head) {
  const std::string authority = head.host.host.str() + ":" + std::to_string(head.host.port);
  std::string bytes = head.method + " " + (head.is_connect() ? "" : "http://") + authority + head.target +
                      " HTTP/1.1\r\nHost: " + authority + "\r\n";
  for (const http::Field& field : head.fields) {
    if (field.name != "host") bytes += field.name + ": " + field.value + "\r\n";
  }
  return bytes + "\r\n";
}

bool same(const http::RequestHead& one, const http::RequestHead& other) {
  return one.method == other.method && one.target == other.target && one.host.host == other.host.host &&
         one.host.port == other.host.port && one.body == other.body && one.body_bytes == other.body_bytes &&
         one.persistence == other.persistence && one.expects_continue == other.expects_continue;
}

// The request as it goes on to its host.
void check_origin_form(const http::RequestHead& head) {
  const std::string bytes = head.method + " " + head.target + " HTTP/1.1\r\nHost: " + head.host.host.str() +
                            ":" + std::to_string(head.host.port) + "\r\n\r\n";
  const auto origin = http::parse_request_head(bytes, 443);
  require(origin && origin->target == head.target && origin->host.host == head.host.host &&
          origin->host.port == head.host.port);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto whole = http::HeadScanner(http::Entry::Proxy).scan(bytes);
  http::HeadScanner in_two(http::Entry::Proxy);
  auto pieces = in_two.scan(bytes.substr(0, size / 2));
  if (pieces && !*pieces) pieces = in_two.scan(bytes);
  require(pieces.has_value() == whole.has_value());
  if (!whole || !*whole) return 0;

  const auto head = http::parse_proxy_request(bytes.substr(0, **whole));
  if (!head) return 0;
  require(head->is_connect() == head->target.empty());
  if (!head->is_connect()) check_origin_form(*head);
  const std::string again = serialised(*head);
  // A Host that was left out, and a port, make it longer than it came.
  if (head->target.size() + 300 > http::kMaxTargetBytes || head->fields.size() >= http::kMaxFields ||
      again.size() > http::kMaxHeadBytes) {
    return 0;
  }
  const auto reread = http::parse_proxy_request(again);
  require(reread && same(*reread, *head));
  return 0;
}
