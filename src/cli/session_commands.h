// `sallyport new`, `adopt`, `list`, `status`, `start`, `stop` and `destroy`: sessions at a daemon. Each
// returns the exit code.
#pragma once

#include "cli/command_line.h"

namespace sallyport::cli {

int new_session(const NewOptions& options);
int adopt_container(const AdoptOptions& options);
int list_sessions(const ListOptions& options);
int show_session(const StatusOptions& options);
int act_on_sessions(const SessionOptions& options);

}  // namespace sallyport::cli
