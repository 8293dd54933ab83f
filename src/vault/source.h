// The one unit that reads credentials.
#pragma once

#include <cstddef>

#include "base/fd.h"
#include "base/secret.h"

namespace sallyport::vault {

inline constexpr std::size_t kMaxCredentialBytes = 4096;

// Reads a token from an open credential file (from its start, whatever the descriptor's position): one line
// of 1 to kMaxCredentialBytes printable ASCII characters without spaces, with at most one newline behind it.
// CredentialUnavailable otherwise; the detail never shows a byte of the file.
Result<Secret> read_credential(const Fd& file);

}  // namespace sallyport::vault
