// Errors as values: Result<T> wherever input or I/O can fail.
#pragma once

#include <expected>
#include <string>
#include <utility>

#include "base/reason.h"

namespace sallyport {

// `detail` holds the particulars (names, addresses, errno text). It goes to the audit log and to the
// operator, never into the sandbox, and never holds a byte of a credential.
struct Error {
  Reason reason = Reason::Internal;
  std::string detail;

  Origin origin() const { return info(reason).origin; }
};

template <class T>
using Result = std::expected<T, Error>;
using Status = Result<void>;

inline std::unexpected<Error> fail(Reason reason, std::string detail) {
  return std::unexpected(Error{reason, std::move(detail)});
}

// Passes another result's error on.
template <class T>
std::unexpected<Error> fail(Result<T>&& other) {
  return std::unexpected(std::move(other).error());
}

// fail() with errno's text behind `what`: "open /x: Permission denied".
std::unexpected<Error> fail_errno(Reason reason, std::string what);
// The text of an errno value, without locale.
std::string errno_text(int error);

}  // namespace sallyport
