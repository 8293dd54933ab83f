#include "audit/meter.h"

#include <algorithm>
#include <cstddef>

namespace sallyport::audit {
namespace {

std::size_t index(Reason reason) {
  return static_cast<std::size_t>(reason);
}

}  // namespace

void Meter::add(const Event& event) {
  switch (event.kind) {
    case Kind::Begin:
      ++allowed_;
      return;
    case Kind::Refused:
      ++refused_[index(event.reason)];
      return;
    case Kind::End:
      return add_end(event);
    case Kind::Credential:
      ++credentials_[index(event.reason)];
      return;
    case Kind::Alarm:
      ++alarms_[index(event.reason)];
      return;
    case Kind::SessionStart:
    case Kind::SessionEnd:
    case Kind::Refs:
    case Kind::Reload:
    case Kind::Coalesced:
      return;
  }
}

void Meter::add_end(const Event& event) {
  ++ended_[index(event.reason)];
  bytes_in_ += event.bytes_in;
  bytes_out_ += event.bytes_out;
  duration_ += event.duration;
  const auto* const bound = std::ranges::lower_bound(kBounds, event.duration);
  if (bound != kBounds.end()) ++durations_[static_cast<std::size_t>(bound - kBounds.begin())];
}

}  // namespace sallyport::audit
