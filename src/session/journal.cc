#include "session/journal.h"

#include <utility>

namespace sallyport::session {
namespace {

// What a sandbox makes as much of as it likes.
bool is_cheap(audit::Kind kind) {
  return kind == audit::Kind::Refused || kind == audit::Kind::Alarm;
}

}  // namespace

void Journal::alarm(Error what) {
  audit::Event event;
  event.kind = audit::Kind::Alarm;
  event.reason = what.reason;
  event.detail = std::move(what.detail);
  (void)append(event);  // nothing waits for it
}

Status Journal::append(const audit::Event& event) {
  // Also where it cannot be written: the vault does not wait for that.
  if (event.kind == audit::Kind::Credential && event.reason == Reason::None) ++credential_uses_;
  if (!is_cheap(event.kind)) return write(event);
  const bool has_line = refusal_bytes_ < limits_.refusal_bytes && coalescer_.admit(event);
  if (!has_line) {
    if (refusal_bytes_ >= limits_.refusal_bytes) coalescer_.count(event);
    count(event);
    return {};
  }
  const std::uint64_t before = sink_.bytes_written();
  const Status written = write(event);
  refusal_bytes_ += sink_.bytes_written() - before;
  return written;
}

void Journal::tell_coalesced() {
  for (const audit::Event& line : coalescer_.tell()) (void)sink_.append(session_, line);
}

// Whatever was begun gets its end.
bool Journal::has_room_for(const audit::Event& event) const {
  if (sink_.bytes_written() < limits_.bytes || is_cheap(event.kind)) return true;
  return event.kind == audit::Kind::SessionEnd ||
         (event.kind == audit::Kind::End && open_.contains(event.request));
}

Status Journal::write(const audit::Event& event) {
  const bool begins = event.kind == audit::Kind::Begin;
  if (begins && open_.size() >= kMaxOpen) return fail(Reason::Overloaded, "too many open requests to follow");
  if (!has_room_for(event)) {
    return lost({Reason::AuditUnavailable, "the session's share of the audit log is used up; start another"});
  }
  if (auto status = sink_.append(session_, event); !status) return lost(std::move(status).error());
  count(event);
  if (begins) {
    audit::Event begun = event;
    begun.refs.clear();
    open_.insert_or_assign(event.request, std::move(begun));
  }
  if (event.kind == audit::Kind::End) close(event);
  return {};
}

void Journal::count(const audit::Event& event) {
  summary_.add(event);
  if (meter_ != nullptr) meter_->add(event);
}

Status Journal::lost(Error why) {
  if (meter_ != nullptr) meter_->add_lost();
  return std::unexpected(std::move(why));
}

void Journal::close(const audit::Event& end) {
  const auto begun = open_.extract(end.request);
  constexpr int kFirstRefusal = 400;
  const bool went_well = end.reason == Reason::None && end.status != 0 && end.status < kFirstRefusal;
  if (!begun.empty() && !begun.mapped().credential.empty() && went_well) ++credentialed_uses_;
}

void Journal::end_open_requests(const Error& why) {
  for (auto& [request, event] : std::exchange(open_, {})) {
    event.kind = audit::Kind::End;
    event.reason = why.reason;
    event.detail = why.detail;
    if (sink_.append(session_, event)) count(event);
  }
}

}  // namespace sallyport::session
