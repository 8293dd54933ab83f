// One session's part of the audit log: writes its events, counts them, and knows which requests are still
// open, so that a request that was begun has an end in the log even when the gate dies.
#pragma once

#include <map>
#include <string>

#include "audit/event.h"
#include "audit/sink.h"
#include "audit/summary.h"
#include "base/result.h"

namespace sallyport::session {

class Journal {
 public:
  // Requests open at once that are followed; more are refused, by the failure of their Begin.
  static constexpr std::size_t kMaxOpen = 4096;

  Journal(audit::Sink sink, std::string session) : sink_(std::move(sink)), session_(std::move(session)) {}

  Status append(const audit::Event& event);
  // Writes an End with that reason and detail for every request that has none.
  void end_open_requests(const Error& why);

  std::size_t open_requests() const { return open_.size(); }
  const audit::Summary& summary() const { return summary_; }

 private:
  audit::Sink sink_;
  std::string session_;
  audit::Summary summary_;
  std::map<std::string, audit::Event> open_;  // request id -> its Begin, without refs
};

}  // namespace sallyport::session
