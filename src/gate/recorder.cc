#include "gate/recorder.h"

#include <utility>

#include "wire/messages.h"

namespace sallyport::gate {

Recorder::Recorder(net::Worker& worker, net::PacketChannel& channel) : worker_(worker), channel_(channel) {}

Status Recorder::send(audit::Event event, std::uint64_t number) {
  if (ended_) return fail(Reason::AuditUnavailable, "the warden is gone");
  Status sent = channel_.send(wire::encode(wire::FromGate(wire::AuditAppend{number, std::move(event)})), {});
  if (!sent) return fail(Reason::AuditUnavailable, std::move(sent).error().detail);
  return {};
}

Status Recorder::tell_lost() {
  if (lost_ == 0) return {};
  audit::Event alarm;
  alarm.kind = audit::Kind::Alarm;
  alarm.reason = Reason::AuditUnavailable;
  alarm.detail = std::to_string(lost_) + " events of the gate were lost";
  Status sent = send(std::move(alarm), wire::kNobodyWaits);
  if (sent) lost_ = 0;
  return sent;
}

net::Task<Status> Recorder::record(audit::Event event) {
  if (pending_.size() >= kMaxPending) co_return fail(Reason::AuditUnavailable, "too many events wait");
  if (Status told = tell_lost(); !told) co_return told;
  const std::uint64_t number = ++last_number_;
  if (Status sent = send(std::move(event), number); !sent) co_return sent;
  Pending pending(worker_);
  pending_.emplace(number, &pending);
  co_await pending.answered.wait();
  pending_.erase(number);
  if (!pending.written) co_return fail(Reason::AuditUnavailable, "the warden could not write the event");
  co_return Status();
}

void Recorder::note(audit::Event event) {
  if (!tell_lost() || !send(std::move(event), wire::kNobodyWaits)) ++lost_;
}

void Recorder::written(std::uint64_t number, bool written) {
  const auto found = pending_.find(number);
  if (found == pending_.end()) return;
  found->second->written = written;
  found->second->answered.set();
}

void Recorder::end() {
  ended_ = true;
  for (auto& [number, pending] : pending_) pending->answered.set();
}

}  // namespace sallyport::gate
