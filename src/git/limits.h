// Limits of git requests that are not a parser's own (push.h, pktline.h, ../http/limits.h).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace sallyport::git {

// While the answer flows the silence may be the upstream's: the client gets this much more than
// Timeouts::idle, so that the one at fault is named.
inline constexpr std::chrono::seconds kAnswerGrace{60};
// How much of a refused body is read so that git still reads the reason; beyond it the connection closes.
inline constexpr std::uint64_t kMaxDrainBytes = std::uint64_t{64} * 1024 * 1024;
// One read and one write of a transfer; two such buffers a request.
inline constexpr std::size_t kMoveBytes = std::size_t{64} * 1024;
inline constexpr std::size_t kMaxGitProtocolBytes = 256;  // the Git-Protocol header

}  // namespace sallyport::git
