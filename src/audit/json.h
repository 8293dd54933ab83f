// An event as one line of JSON. docs/audit.md holds the schema.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "audit/event.h"

namespace sallyport::audit {

// What the writer adds to an event.
struct Stamp {
  std::chrono::system_clock::time_point time;
  std::uint64_t sequence = 0;
  std::string session;
  std::string container{};  // what engine and kernel call the session's; "" when it is none of an engine's
};

std::string_view name(Kind kind);    // "session_start"
std::string_view name(Entry entry);  // "tls"; "" for None

// RFC 3339 in UTC with microseconds.
std::string time_text(std::chrono::system_clock::time_point time);

// The line, with its newline: ASCII without any other control character. The event is sanitized first. A byte
// that is not printable ASCII becomes \u00XX, so that decoding the JSON string and taking each code point for
// a byte (Latin-1) gives back the very bytes.
std::string json_line(const Stamp& stamp, Event event);

}  // namespace sallyport::audit
