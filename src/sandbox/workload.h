// Starting the user's command inside the sandbox, as sallyport-init's child.
#pragma once

#include <sys/types.h>

#include "base/result.h"
#include "sandbox/init_protocol.h"

namespace sallyport::sandbox {

// As a shell has it.
inline constexpr int kCannotExecute = 126;
inline constexpr int kNotFound = 127;

// Processes at once in a sandbox: against fork bombs, far above what builds need.
inline constexpr unsigned kMaxProcesses = 8192;

// In a process group of its own, in the foreground of the terminal if there is one. What fails after the fork
// (no such program) is said on stderr, and the child exits with one of the codes above.
Result<pid_t> start_workload(const Workload& workload, Terminal terminal);

}  // namespace sallyport::sandbox
