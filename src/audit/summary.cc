#include "audit/summary.h"

namespace sallyport::audit {
namespace {

std::string listed(const std::map<Reason, std::uint64_t>& counts) {
  std::string text;
  for (const auto& [reason, count] : counts) {
    text += text.empty() ? " (" : ", ";
    text.append(code(reason)).append(" ").append(std::to_string(count));
  }
  return text.empty() ? text : text + ")";
}

}  // namespace

void Summary::add(const Event& event) {
  switch (event.kind) {
    case Kind::Begin:
      ++allowed_;
      return;
    case Kind::Refused:
      ++refused_;
      ++refused_by_reason_[event.reason];
      return;
    case Kind::End:
      if (event.reason == Reason::None) return;
      ++failed_;
      ++failed_by_reason_[event.reason];
      return;
    case Kind::Alarm:
      ++alarms_;
      return;
    case Kind::SessionStart:
    case Kind::SessionEnd:
    case Kind::Refs:
    case Kind::Credential:
    case Kind::Reload:
    case Kind::Coalesced:
      return;
  }
}

std::string Summary::line() const {
  std::string text = std::to_string(allowed_) + (allowed_ == 1 ? " request" : " requests") + " allowed, " +
                     std::to_string(refused_) + " refused" + listed(refused_by_reason_);
  if (failed_ > 0) text += ", " + std::to_string(failed_) + " failed" + listed(failed_by_reason_);
  if (alarms_ > 0) text += ", " + std::to_string(alarms_) + (alarms_ == 1 ? " alarm" : " alarms");
  return text;
}

}  // namespace sallyport::audit
