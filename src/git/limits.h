// Limits of git requests that are not a parser's own (push.h, pktline.h, ../http/limits.h,
// ../forward/limits.h).
#pragma once

#include <cstddef>
#include <cstdint>

namespace sallyport::git {

// How much of a refused body is read so that git still reads the reason; beyond it the connection closes.
inline constexpr std::uint64_t kMaxDrainBytes = std::uint64_t{64} * 1024 * 1024;
inline constexpr std::size_t kMaxGitProtocolBytes = 256;  // the Git-Protocol header

}  // namespace sallyport::git
