// The way to the daemon, for the commands that need one.
#pragma once

#include <boost/json/object.hpp>
#include <functional>
#include <string>

#include "base/result.h"
#include "cli/command_line.h"
#include "control/api_client.h"

namespace sallyport::cli {

// Of a daemon that this user starts: the socket that was named, or the usual one.
Result<std::string> own_socket(const DaemonOptions& options);

// The socket that was named; else the user's own if there is one, else the system's.
Result<control::ApiClient> link_to_daemon(const DaemonOptions& options);

// A call that is answered by notices and then by the session; each notice is told as it comes.
Result<boost::json::object> follow(const control::ApiClient& daemon, const control::ApiRequest& request,
                                   const std::function<void(const std::string&)>& on_notice);

// "/v1/sessions/NAME", and what follows. Fails for what can be no session's name.
Result<std::string> session_path(const std::string& session, const std::string& rest = "");

}  // namespace sallyport::cli
