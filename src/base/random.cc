#include "base/random.h"

#include <sys/random.h>

#include <cerrno>
#include <cstdlib>

#include "base/text.h"

namespace sallyport {

std::string random_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  for (std::size_t done = 0; done < count;) {
    const ssize_t got = ::getrandom(bytes.data() + done, count - done, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) std::abort();
    done += static_cast<std::size_t>(got);
  }
  return bytes;
}

std::string random_hex(std::size_t bytes) {
  return to_hex(random_bytes(bytes));
}

}  // namespace sallyport
