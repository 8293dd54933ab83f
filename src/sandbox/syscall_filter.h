// The system calls that a sandbox does without (docs/sandbox.md lists them with reasons). A list of what is
// refused, not of what is allowed: any program may run in here, and what keeps it in are the namespaces; the
// filter closes the families and calls that namespaces do not cover, and cuts the kernel's surface.
#pragma once

#include "base/fd.h"
#include "base/result.h"

namespace sallyport::sandbox {

// The compiled filter as bwrap's --seccomp takes it, in a memory file at offset 0.
Result<Fd> syscall_filter();

}  // namespace sallyport::sandbox
