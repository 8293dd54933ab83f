// How long an upstream may take, and how much of it is kept. docs/git-protocol.md repeats the timeouts.
#pragma once

#include <chrono>
#include <cstddef>

#include "net/dial.h"
#include "net/worker.h"

namespace sallyport::upstream {

// Values, so that tests can shorten them.
struct Timeouts {
  // TCP connect and TLS handshake, each.
  net::Clock::duration connect = net::kConnectLimit;
  // From the request's last byte to the answer's first: git's servers count and compress objects meanwhile.
  net::Clock::duration first_byte = std::chrono::seconds(600);
  // Between two bytes, in either direction. The whole has no limit.
  net::Clock::duration idle = std::chrono::seconds(600);
};

// An answer's head: status line and fields.
inline constexpr std::size_t kMaxAnswerHeadBytes = 64 * 1024;
inline constexpr std::size_t kMaxAnswerFields = 100;
// Interim answers (1xx) before the final one.
inline constexpr int kMaxInterimAnswers = 8;
// A request's head, with the credential's line.
inline constexpr std::size_t kMaxRequestHeadBytes = 16 * 1024;
// Body bytes that become one chunk, and one TLS record with their framing.
inline constexpr std::size_t kChunkBytes = 16 * 1024 - 16;

// Idle connections: of one key, of all, and for how long (servers close theirs after 5 s and more).
inline constexpr std::size_t kMaxIdlePerKey = 4;
inline constexpr std::size_t kMaxIdle = 32;
inline constexpr std::chrono::seconds kIdleLife{5};

}  // namespace sallyport::upstream
