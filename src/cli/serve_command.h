// `sallyport serve`: starts a session without a sandbox and waits until it is to end.
#pragma once

#include "cli/command_line.h"

namespace sallyport::cli {

// Returns the exit code.
int serve_command(const ServeOptions& options);

}  // namespace sallyport::cli
