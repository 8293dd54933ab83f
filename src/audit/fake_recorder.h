// For tests: the audit log in memory.
#pragma once

#include <utility>
#include <vector>

#include "audit/recorder.h"

namespace sallyport::audit {

class FakeRecorder : public Recorder {
 public:
  net::Task<Status> record(Event event) override {
    if (!accepts) co_return fail(Reason::AuditUnavailable, "fake");
    note(std::move(event));
    co_return Status();
  }
  void note(Event event) override { events.push_back(std::move(event)); }

  bool accepts = true;
  std::vector<Event> events;
};

}  // namespace sallyport::audit
