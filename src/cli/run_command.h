// `sallyport run`: starts a session and stands between it and the user's terminal until it ends.
#pragma once

#include "cli/command_line.h"

namespace sallyport::cli {

// Returns the exit code.
int run_command(const RunOptions& options);

}  // namespace sallyport::cli
