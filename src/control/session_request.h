// What a client asks for with a new session, and with a command in one: from JSON, checked for shape. Whether
// the paths lead to what may be mounted is judged when the session is planned.
#pragma once

#include <boost/json/value.hpp>
#include <string>

#include "base/result.h"
#include "control/lifetime.h"
#include "session/commands.h"
#include "session/places.h"
#include "session/request.h"

namespace sallyport::control {

struct NewSession {
  std::string name;  // "" when the daemon shall make one
  session::Request request;
  Lifetime lifetime;
};

// `places`: the daemon's, whose file and audit log count, whoever asks.
Result<NewSession> read_new_session(const boost::json::value& body, const session::Places& places);
// For a container that asks by a label of its.
NewSession session_for_container(const std::string& container, const std::string& name,
                                 const std::string& policy, const session::Places& places);
Result<session::Command> read_command(const boost::json::value& body);
// {"signal": "TERM"}
Result<int> read_signal(const boost::json::value& body);

}  // namespace sallyport::control
