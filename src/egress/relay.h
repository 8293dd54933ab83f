// Moves bytes between two connections that speak a protocol of their own.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "net/stream.h"
#include "net/task.h"

namespace sallyport::egress {

// One read and one write; held only while bytes are there to be moved.
inline constexpr std::size_t kMaxRelayBytes = std::size_t{32} * 1024;

struct RelayEnd {
  net::Stream& stream;
  std::string early;  // what it said before, still to be passed on
};

struct Relayed {
  Error error{Reason::None, {}};  // None: both ended orderly
  std::uint64_t from_first = 0;
  std::uint64_t from_second = 0;
};

// Until both directions ended, each by itself, or one failed: then both streams are closed. The streams'
// limits hold, and the streams outlive the call.
net::Task<Relayed> relay(RelayEnd first, RelayEnd second);

}  // namespace sallyport::egress
