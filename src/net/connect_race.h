// Happy eyeballs (RFC 8305): several addresses of one host are tried side by side, a little apart, and the
// first connection that is made wins.
#pragma once

#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "net/task.h"
#include "net/worker.h"
#include "os/endpoint.h"

namespace sallyport::net {

// How long an attempt has for itself before the next one is started beside it (RFC 8305, section 5). One that
// fails lets the next start at once.
inline constexpr Clock::duration kConnectionAttemptDelay = std::chrono::milliseconds(250);
inline constexpr std::size_t kMaxConcurrentAttempts = 4;

struct Connected {
  Fd socket;  // non-blocking
  os::Endpoint peer;
};

// Tries `endpoints` in their order; `limit` is for all of them together. UpstreamUnreachable when every one
// has failed, UpstreamTimeout; the detail names the last that was tried. When this returns, or is destroyed,
// every other attempt is closed.
Task<Result<Connected>> connect_first(Worker& worker, std::vector<os::Endpoint> endpoints,
                                      Clock::duration limit);

}  // namespace sallyport::net
