#include "audit/event.h"

#include <algorithm>

#include "audit/mask.h"
#include "base/random.h"

namespace sallyport::audit {
namespace {

constexpr std::string_view kCutMark = "...";

void sanitize_text(std::string& text, std::size_t max_bytes) {
  // Masked before it is cut: half a token would not be known for one.
  text = masked(text);
  if (text.size() <= max_bytes) return;
  text.resize(max_bytes - kCutMark.size());
  text += kCutMark;
}

std::size_t bytes_of(const RefChange& change) {
  return std::min(change.ref.size(), Event::kMaxText) + std::min(change.old_id.size(), Event::kMaxName) +
         std::min(change.new_id.size(), Event::kMaxName);
}

}  // namespace

std::string new_request_id() {
  constexpr std::size_t kRequestIdBytes = 8;
  return random_hex(kRequestIdBytes);
}

std::size_t refs_that_fit(std::span<const RefChange> refs) {
  std::size_t bytes = 0;
  std::size_t count = 0;
  for (const RefChange& change : refs) {
    bytes += bytes_of(change);
    if (bytes > Event::kMaxRefsBytes || count == Event::kMaxRefs) break;
    ++count;
  }
  return count;
}

void sanitize(Event& event) {
  for (std::string* text :
       {&event.request, &event.destination, &event.scheme, &event.host, &event.method, &event.credential}) {
    sanitize_text(*text, Event::kMaxName);
  }
  for (std::string* text : {&event.path, &event.detail, &event.rule}) sanitize_text(*text, Event::kMaxText);
  event.refs.resize(refs_that_fit(event.refs));
  for (RefChange& change : event.refs) {
    sanitize_text(change.ref, Event::kMaxText);
    sanitize_text(change.old_id, Event::kMaxName);
    sanitize_text(change.new_id, Event::kMaxName);
  }
}

}  // namespace sallyport::audit
