// Bytes that are too many for a packet travel as a sealed memory file: nobody can change or cut them any
// more, so that what the receiver checked is what it reads.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace sallyport::wire {

// A memfd that holds `bytes`, sealed against every change, with its offset at their beginning.
Result<Fd> to_memfd(std::string_view bytes);

// Refuses a descriptor that is no fully sealed memfd, or that holds more than `max_bytes`.
Result<std::string> read_memfd(const Fd& memfd, std::size_t max_bytes);

}  // namespace sallyport::wire
