// `sallyport gateway status`, `stop` and `reload`: how the daemon is, its end, and its sessions' files. Each
// returns the exit code.
#pragma once

#include "cli/command_line.h"

namespace sallyport::cli {

int gateway_status(const GatewayStatusOptions& options);
int gateway_stop(const GatewayStopOptions& options);
int gateway_reload(const GatewayReloadOptions& options);

}  // namespace sallyport::cli
