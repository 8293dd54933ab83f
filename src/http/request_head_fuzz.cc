// Any bytes as a request's head: the scanner and the parser agree however the bytes are cut, and what is
// accepted is clean.

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "http/limits.h"
#include "http/request_head.h"

using namespace sallyport;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto whole = http::HeadScanner().scan(bytes);

  http::HeadScanner in_two;
  auto pieces = in_two.scan(bytes.substr(0, size / 2));
  if (pieces && !*pieces) pieces = in_two.scan(bytes);
  require(pieces.has_value() == whole.has_value());
  if (!whole) {
    require(pieces.error().reason == whole.error().reason);
    return 0;
  }
  require(*pieces == *whole);
  if (!*whole) return 0;

  const auto head = http::parse_request_head(bytes.substr(0, **whole), 443);
  if (!head) return 0;
  require(head->target.starts_with('/') && head->target.size() <= http::kMaxTargetBytes);
  require(head->fields.size() <= http::kMaxFields);
  require(head->body == http::BodyKind::Declared || head->body_bytes == 0);
  for (const http::Field& field : head->fields) {
    require(field.value.find_first_of("\r\n") == std::string::npos);
    require(std::ranges::none_of(field.name, [](char c) { return c >= 'A' && c <= 'Z'; }));
  }
  return 0;
}
