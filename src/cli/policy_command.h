// `sallyport policy check` and `sallyport policy explain`.
#pragma once

#include "cli/command_line.h"

namespace sallyport::cli {

// Each prints to standard output and returns the exit code.
int policy_check(const CheckOptions& options);
int policy_explain(const ExplainOptions& options);

}  // namespace sallyport::cli
