// The system calls that a confined process may make, and loading them as a filter.
#pragma once

#include "base/result.h"
#include "os/confine.h"

namespace sallyport::os {

// Whatever is not listed in seccomp_filter.cc fails with EPERM, opening a file by name with ENOENT (libraries
// try to, and take that for "there is none"). Another architecture's calls (32-bit, x32) end the process.
Status load_seccomp_filter(Role role);

}  // namespace sallyport::os
