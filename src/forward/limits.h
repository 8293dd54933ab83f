// Limits of a request that is forwarded, beside those of its two connections.
#pragma once

#include <chrono>
#include <cstddef>

namespace sallyport::forward {

// While the answer flows the silence may be the upstream's: the client gets this much more than
// Timeouts::idle, so that the one at fault is named.
inline constexpr std::chrono::seconds kAnswerGrace{60};
// One read and one write of a transfer; two such buffers a request.
inline constexpr std::size_t kMoveBytes = std::size_t{64} * 1024;

}  // namespace sallyport::forward
