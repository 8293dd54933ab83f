// What a session did, in one line for the person who started it.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "audit/event.h"

namespace sallyport::audit {

class Summary {
 public:
  // Counts Begin, Refused, Alarm, and End with a reason; the rest is not counted.
  void add(const Event& event);

  std::uint64_t allowed() const { return allowed_; }
  std::uint64_t refused() const { return refused_; }
  // "12 requests allowed, 3 refused (host_not_allowed 2, repo_not_granted 1), 1 failed (upstream_timeout 1)".
  std::string line() const;

 private:
  using Counts = std::map<Reason, std::uint64_t>;

  std::uint64_t allowed_ = 0;
  std::uint64_t refused_ = 0;
  std::uint64_t failed_ = 0;
  std::uint64_t alarms_ = 0;
  Counts refused_by_reason_;
  Counts failed_by_reason_;
};

}  // namespace sallyport::audit
