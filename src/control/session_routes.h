// The calls that are about sessions: begin and end one, look at them and their log, and run commands in one.
#pragma once

#include <vector>

#include "control/api_server.h"
#include "control/sessions.h"
#include "session/places.h"

namespace sallyport::control {

// `loop`, `sessions` and `access` outlive the routes. `places`: the daemon's.
std::vector<Route> session_routes(os::EventLoop& loop, Sessions& sessions, const ApiAccess& access,
                                  session::Places places);

}  // namespace sallyport::control
