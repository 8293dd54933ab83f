#include "session/journal.h"

#include <utility>

namespace sallyport::session {

Status Journal::append(const audit::Event& event) {
  const bool begins = event.kind == audit::Kind::Begin;
  if (begins && open_.size() >= kMaxOpen) return fail(Reason::Overloaded, "too many open requests to follow");
  if (auto status = sink_.append(session_, event); !status) return status;
  summary_.add(event);
  if (begins) {
    audit::Event begun = event;
    begun.refs.clear();
    open_.insert_or_assign(event.request, std::move(begun));
  }
  if (event.kind == audit::Kind::End) open_.erase(event.request);
  return {};
}

void Journal::end_open_requests(const Error& why) {
  for (auto& [request, event] : std::exchange(open_, {})) {
    event.kind = audit::Kind::End;
    event.reason = why.reason;
    event.detail = why.detail;
    if (sink_.append(session_, event)) summary_.add(event);
  }
}

}  // namespace sallyport::session
