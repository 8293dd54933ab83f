#include "wire/event_codec.h"

#include <utility>

namespace sallyport::wire {

using audit::Event;

void put_event(Writer& out, Event event) {
  audit::sanitize(event);
  out.enumerator(event.kind).string(event.request).enumerator(event.entry).string(event.destination);
  out.string(event.scheme).string(event.host).u16(event.port).string(event.method).string(event.path);
  out.enumerator(event.reason).string(event.detail).string(event.rule).string(event.credential);
  out.u32(static_cast<std::uint32_t>(event.refs.size()));
  for (const audit::RefChange& change : event.refs) {
    out.string(change.ref).string(change.old_id).string(change.new_id);
  }
  out.u32(event.refs_total).u16(static_cast<std::uint16_t>(event.status));
  out.u64(event.bytes_in).u64(event.bytes_out).u64(static_cast<std::uint64_t>(event.duration.count()));
}

Event get_event(Reader& in) {
  Event event;
  event.kind = in.enumerator(audit::Kind::Alarm);
  event.request = in.string(Event::kMaxName);
  event.entry = in.enumerator(audit::Entry::Proxy);
  event.destination = in.string(Event::kMaxName);
  event.scheme = in.string(Event::kMaxName);
  event.host = in.string(Event::kMaxName);
  event.port = in.u16();
  event.method = in.string(Event::kMaxName);
  event.path = in.string(Event::kMaxText);
  event.reason = in.enumerator(Reason::Internal);
  event.detail = in.string(Event::kMaxText);
  event.rule = in.string(Event::kMaxText);
  event.credential = in.string(Event::kMaxName);
  const std::uint32_t refs = in.count(Event::kMaxRefs);
  for (std::uint32_t i = 0; i < refs && in.ok(); ++i) {
    audit::RefChange& change = event.refs.emplace_back();
    change.ref = in.string(Event::kMaxText);
    change.old_id = in.string(Event::kMaxName);
    change.new_id = in.string(Event::kMaxName);
  }
  event.refs_total = in.u32();
  event.status = in.u16();
  event.bytes_in = in.u64();
  event.bytes_out = in.u64();
  const std::uint64_t microseconds = in.u64();
  if (microseconds > INT64_MAX) in.refuse();
  event.duration = std::chrono::microseconds(microseconds & INT64_MAX);
  return event;
}

}  // namespace sallyport::wire
