// `sallyport gateway status`: how the daemon is. Returns the exit code.
#pragma once

#include "cli/command_line.h"

namespace sallyport::cli {

int gateway_status(const GatewayStatusOptions& options);

}  // namespace sallyport::cli
