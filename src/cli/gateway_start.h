// `sallyport gateway start`: the daemon of this user in the background. Returns the exit code.
#pragma once

#include "cli/command_line.h"

namespace sallyport::cli {

// When the daemon is ready, or one was already. A daemon that is not ready in time, or whose start is
// interrupted, is ended again.
int gateway_start(const GatewayStartOptions& options);

}  // namespace sallyport::cli
