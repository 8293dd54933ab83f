#include "base/result.h"

#include <cerrno>
#include <cstring>

namespace sallyport {

std::string errno_text(int error) {
  const char* text = ::strerrordesc_np(error);
  return text != nullptr ? text : "error " + std::to_string(error);
}

std::unexpected<Error> fail_errno(Reason reason, std::string what) {
  const int error = errno;
  return fail(reason, std::move(what) + ": " + errno_text(error));
}

}  // namespace sallyport
