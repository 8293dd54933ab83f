// Where the gate leaves its events. The warden alone writes the log.
#pragma once

#include <utility>

#include "audit/event.h"
#include "base/result.h"
#include "net/task.h"

namespace sallyport::audit {

class Recorder {
 public:
  virtual ~Recorder() = default;
  // Returns when the writer has accepted the line; AuditUnavailable when it could not: then the request is
  // refused.
  virtual net::Task<Status> record(Event event) = 0;
  // The one line of what is refused. Refused it is whether or not the line can be written.
  net::Task<> refuse(Event event, Error error) {
    event.kind = Kind::Refused;
    event.reason = error.reason;
    event.detail = std::move(error.detail);
    static_cast<void>(co_await record(std::move(event)));
  }
  // For what needs no answer before it goes on (End, and refusals of a datagram).
  virtual void note(Event event) = 0;
};

}  // namespace sallyport::audit
