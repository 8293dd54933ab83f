// Closing so that the other side cannot take it for an orderly end.
#pragma once

#include "base/fd.h"

namespace sallyport::os {

// Closing the TCP connection then resets it, and drops what is still unsent.
void reset_on_close(const Fd& connection);
void reset_on_close(int connection);

}  // namespace sallyport::os
