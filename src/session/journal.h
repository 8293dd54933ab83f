// One session's part of the audit log: writes its events, counts them, and knows which requests are still
// open, so that a request that was begun has an end in the log even when the gate dies. What a sandbox, or a
// gate that was taken over, can have written has its limits.
#pragma once

#include <map>
#include <string>

#include "audit/coalesce.h"
#include "audit/event.h"
#include "audit/meter.h"
#include "audit/sink.h"
#include "audit/summary.h"
#include "base/result.h"

namespace sallyport::session {

class Journal {
 public:
  // Requests open at once that are followed; more are refused, by the failure of their Begin.
  static constexpr std::size_t kMaxOpen = 16'384;
  struct Limits {
    // Refusals and alarms of one session get no more than this; what comes then is counted only.
    std::uint64_t refusal_bytes = 16ULL * 1024 * 1024;
    // All lines of one session, a million requests or so: then nothing more is allowed.
    std::uint64_t bytes = 1024ULL * 1024 * 1024;
  };

  Journal(audit::Sink sink, std::string session) : Journal(std::move(sink), std::move(session), {}) {}
  Journal(audit::Sink sink, std::string session, Limits limits)
      : sink_(std::move(sink)), session_(std::move(session)), limits_(limits) {}

  // From now on in every line: see Runtime::identity().
  void set_container(std::string container) { sink_.set_container(std::move(container)); }
  // Everything from now on counts in that one too, which outlives this.
  void count_in(audit::Meter& meter) { meter_ = &meter; }
  // What is only counted was accepted too. AuditUnavailable when the event is not in the log and will not be.
  Status append(const audit::Event& event);
  void alarm(Error what);
  // Writes what was counted since the last time; every Coalescer::kInterval, and at the end.
  void tell_coalesced();
  // Writes an End with that reason and detail for every request that has none.
  void end_open_requests(const Error& why);

  std::size_t open_requests() const { return open_.size(); }
  // Requests that the vault gave a credential to.
  std::uint64_t credential_uses() const { return credential_uses_; }
  // Those of them that an upstream took.
  std::uint64_t credentialed_uses() const { return credentialed_uses_; }
  const audit::Summary& summary() const { return summary_; }

 private:
  Status write(const audit::Event& event);
  void count(const audit::Event& event);
  Status lost(Error why);
  void close(const audit::Event& end);
  bool has_room_for(const audit::Event& event) const;

  audit::Sink sink_;
  std::string session_;
  Limits limits_;
  audit::Summary summary_;
  audit::Meter* meter_ = nullptr;
  audit::Coalescer coalescer_;
  std::uint64_t refusal_bytes_ = 0;
  std::uint64_t credential_uses_ = 0;
  std::uint64_t credentialed_uses_ = 0;
  std::map<std::string, audit::Event> open_;  // request id -> its Begin, without refs
};

}  // namespace sallyport::session
