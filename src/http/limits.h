// Every limit of the client side of HTTP, in one table. docs/git-protocol.md repeats it for operators.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace sallyport::http {

// What a client chooses, and how much of it we hold.
inline constexpr std::size_t kMaxHeadBytes =
    std::size_t{32} * 1024;                     // request line and fields, with their line ends
inline constexpr std::size_t kMaxFields = 100;  // header fields of one request
inline constexpr std::size_t kMaxLineBytes = std::size_t{8} * 1024;    // one line, without its CRLF
inline constexpr std::size_t kMaxTargetBytes = std::size_t{4} * 1024;  // the request target
inline constexpr std::size_t kHeadReadBytes = std::size_t{8} * 1024;   // one read where a head is expected
inline constexpr std::size_t kReadBytes =
    std::size_t{64} * 1024;  // one read of a body; held only while a request is in work

// How long a client may take, beside the head's limit, which the policy has.
inline constexpr std::chrono::seconds kKeepAliveIdle{60};  // between two requests of a connection
inline constexpr std::chrono::seconds kBodyIdle{300};      // without a byte moving, inside a request

// What a client is told to wait when it was too fast, or we too busy: at least, also where nobody knows, and
// at most, since tools obey without a word and look as if they hung.
inline constexpr std::chrono::seconds kRetryAfter{1};
inline constexpr std::chrono::seconds kMaxRetryAfter{60};

// Closing after an answer whose request was not read to its end: what is still read, so that the answer is
// not torn away by a reset.
inline constexpr std::chrono::seconds kLingerTimeout{2};
inline constexpr std::uint64_t kLingerBytes = std::uint64_t{256} * 1024;

}  // namespace sallyport::http
