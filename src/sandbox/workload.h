// Starting the user's commands inside the sandbox, as sallyport-init's children.
#pragma once

#include <sys/types.h>

#include <array>

#include "base/result.h"
#include "sandbox/init_protocol.h"

namespace sallyport::sandbox {

// As a shell has it.
inline constexpr int kCannotExecute = 126;
inline constexpr int kNotFound = 127;

// Processes at once in a sandbox: against fork bombs, far above what builds need.
inline constexpr unsigned kMaxProcesses = 8192;

// Both below: in a process group of its own, in the foreground of the terminal if there is one. What fails
// after the fork (no such program) is said on stderr, and the child exits with one of the codes above.

// With our own standard descriptors, in our own session.
Result<pid_t> start_workload(const Workload& workload, Terminal terminal);
// With these, in a session of its own. They are none of 0, 1 and 2.
Result<pid_t> start_beside(const Workload& workload, std::array<int, 3> stdio, Terminal terminal);

}  // namespace sallyport::sandbox
