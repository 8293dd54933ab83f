// `sallyport exec`: a command in a session, with the caller's terminal, files and signals. Returns the exit
// code.
#pragma once

#include "cli/command_line.h"

namespace sallyport::cli {

int exec_command(const ExecOptions& options);

}  // namespace sallyport::cli
