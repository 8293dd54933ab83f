// Limits of git requests that are not a parser's own (push.h, pktline.h, ../http/limits.h).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace sallyport::git {

// Without a byte moving: git counts objects and waits for disks, so it gets longer than other clients.
inline constexpr std::chrono::seconds kClientIdle{600};
// While the answer flows the silence may be the upstream's, whose own limit is kClientIdle: a little longer
// here, so that the one at fault is named.
inline constexpr std::chrono::seconds kAnswerIdle{660};
// How much of a refused body is read so that git still reads the reason; beyond it the connection closes.
inline constexpr std::uint64_t kMaxDrainBytes = std::uint64_t{64} * 1024 * 1024;
// One read and one write of a transfer; two such buffers a request.
inline constexpr std::size_t kMoveBytes = std::size_t{64} * 1024;
inline constexpr std::size_t kMaxGitProtocolBytes = 256;  // the Git-Protocol header

}  // namespace sallyport::git
