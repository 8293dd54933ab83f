// The command line: reads its words, and leads to the command.

#include <fcntl.h>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "cli/doctor.h"
#include "cli/exec_command.h"
#include "cli/gateway_command.h"
#include "cli/gateway_start.h"
#include "cli/logs_command.h"
#include "cli/policy_command.h"
#include "cli/run_command.h"
#include "cli/serve_command.h"
#include "cli/session_commands.h"
#include "cli/trust_command.h"

namespace {

using namespace sallyport;

struct Execute {
  int operator()(const cli::Done& done) const { return done.exit_code; }
  int operator()(const cli::RunOptions& options) const { return cli::run_command(options); }
  int operator()(const cli::ServeOptions& options) const { return cli::serve_command(options); }
  int operator()(const cli::CheckOptions& options) const { return cli::policy_check(options); }
  int operator()(const cli::ExplainOptions& options) const { return cli::policy_explain(options); }
  int operator()(const cli::TrustOptions& options) const { return cli::policy_trust(options); }
  int operator()(const cli::NewOptions& options) const { return cli::new_session(options); }
  int operator()(const cli::AdoptOptions& options) const { return cli::adopt_container(options); }
  int operator()(const cli::ExecOptions& options) const { return cli::exec_command(options); }
  int operator()(const cli::ListOptions& options) const { return cli::list_sessions(options); }
  int operator()(const cli::LogsOptions& options) const { return cli::show_log(options); }
  int operator()(const cli::AttachOptions& options) const { return cli::attach_command(options); }
  int operator()(const cli::StatusOptions& options) const { return cli::show_session(options); }
  int operator()(const cli::GatewayStatusOptions& options) const { return cli::gateway_status(options); }
  int operator()(const cli::DoctorOptions& options) const { return cli::doctor(options); }
  int operator()(const cli::GatewayStartOptions& options) const { return cli::gateway_start(options); }
  int operator()(const cli::GatewayStopOptions& options) const { return cli::gateway_stop(options); }
  int operator()(const cli::GatewayReloadOptions& options) const { return cli::gateway_reload(options); }
  int operator()(const cli::SessionOptions& options) const { return cli::act_on_sessions(options); }
};

// A descriptor that we open must not become a standard one, which a sandbox gets.
bool open_standard_descriptors() {
  for (int fd = 0; fd < 3; ++fd) {
    if (::fcntl(fd, F_GETFD) < 0 && ::open("/dev/null", O_RDWR) != fd) return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (!open_standard_descriptors()) return cli::kExitFailed;
  try {
    const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
    return std::visit(Execute{}, cli::parse_command_line(arguments));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sallyport: this is a bug: %s\n", error.what());
    return cli::kExitFailed;
  }
}
