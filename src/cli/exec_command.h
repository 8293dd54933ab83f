// `sallyport exec` and `attach`: a command, or a shell, in a session, with the caller's terminal, files and
// signals. Each returns the exit code.
#pragma once

#include "cli/command_line.h"

namespace sallyport::cli {

int exec_command(const ExecOptions& options);
int attach_command(const AttachOptions& options);

}  // namespace sallyport::cli
