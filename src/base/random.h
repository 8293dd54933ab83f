// Random bytes from the kernel. Never fails: a kernel without getrandom(2) is not supported, and aborts.
#pragma once

#include <cstddef>
#include <string>

namespace sallyport {

std::string random_bytes(std::size_t count);
// `bytes` random bytes as lower-case hex; 16 make an id that cannot be guessed (128 bits).
std::string random_hex(std::size_t bytes);

}  // namespace sallyport
