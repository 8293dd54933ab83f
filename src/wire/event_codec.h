// An audit event as bytes, inside a packet of messages.h.
#pragma once

#include "audit/event.h"
#include "wire/codec.h"

namespace sallyport::wire {

// Sanitizes the event first (audit/event.h), so that it always fits a packet.
void put_event(Writer& out, audit::Event event);
// Refuses the reader on anything out of range; the event is then meaningless.
audit::Event get_event(Reader& in);

}  // namespace sallyport::wire
