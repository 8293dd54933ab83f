// How much of an upstream is kept. How long it may take is the grant's to say.
#pragma once

#include <chrono>
#include <cstddef>

namespace sallyport::upstream {

// An answer's head: status line and fields.
inline constexpr std::size_t kMaxAnswerHeadBytes = 64 * 1024;
inline constexpr std::size_t kMaxAnswerFields = 100;
// Interim answers (1xx) before the final one.
inline constexpr int kMaxInterimAnswers = 8;
// A request's head: what the front reads of a client, and our own lines.
inline constexpr std::size_t kMaxRequestHeadBytes = 34 * 1024;
// The same with a credential's line: locked memory.
inline constexpr std::size_t kMaxCredentialedHeadBytes = 16 * 1024;
// Body bytes that become one chunk, and one TLS record with their framing.
inline constexpr std::size_t kChunkBytes = 16 * 1024 - 16;

// Idle connections: of one key, of all, and for how long (servers close theirs after 5 s and more).
inline constexpr std::size_t kMaxIdlePerKey = 64;
inline constexpr std::size_t kMaxIdle = 128;
inline constexpr std::chrono::seconds kIdleLife{5};
// Keys of the pool whose TLS sessions are kept for later connections.
inline constexpr std::size_t kMaxResumedKeys = 32;

}  // namespace sallyport::upstream
