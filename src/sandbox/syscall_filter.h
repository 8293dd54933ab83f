// The system call filter of a sandbox that bubblewrap makes, of the rules in syscall_rules.h.
#pragma once

#include "base/fd.h"
#include "base/result.h"

namespace sallyport::sandbox {

// Compiled as bwrap's --seccomp takes it, in a memory file at offset 0.
Result<Fd> syscall_filter();

}  // namespace sallyport::sandbox
