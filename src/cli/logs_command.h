// `sallyport logs`: a session's lines of the audit log, for people or as they are. Returns the exit code.
#pragma once

#include <boost/json/object.hpp>
#include <string>

#include "cli/command_line.h"

namespace sallyport::cli {

int show_log(const LogsOptions& options);

// One line of the log in words, without control characters.
std::string event_text(const boost::json::object& event);

}  // namespace sallyport::cli
