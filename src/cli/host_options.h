// The options of the commands that are about the host and not about a sandbox, and those that many commands
// have. Each function defines a command below its parent, as command_line.cc does.
#pragma once

#include "cli/command_line.h"

namespace CLI {
class App;
}

namespace sallyport::cli {

void add_file_options(CLI::App& app, FileOptions& files);
void add_json_flag(CLI::App& app, Format& format);
void add_daemon_options(CLI::App& app, DaemonOptions& daemon);

CLI::App& add_gateway_status(CLI::App& gateway, GatewayStatusOptions& options);
CLI::App& add_gateway_start(CLI::App& gateway, GatewayStartOptions& options);
CLI::App& add_gateway_stop(CLI::App& gateway, GatewayStopOptions& options);
CLI::App& add_doctor(CLI::App& app, DoctorOptions& options);
CLI::App& add_completion(CLI::App& app, CompletionOptions& options);
CLI::App& add_manual(CLI::App& app, ManualOptions& options);

}  // namespace sallyport::cli
