// Where the operator's file is, and where a user's, or a daemon's, own state is kept.
#pragma once

#include <string>

namespace sallyport::session {

struct Places {
  std::string config;        // the operator's file
  std::string state;         // a folder; private
  std::string runtime = "";  // the folder of a daemon's socket

  std::string audit() const { return state + "/audit.jsonl"; }
  // The user's consents to policy files.
  std::string trust() const { return state + "/trust"; }
};

// By the XDG Base Directory Specification, from our environment.
Places user_places(const std::string& home);
// Of a host's daemon, which root runs.
Places system_places();

}  // namespace sallyport::session
