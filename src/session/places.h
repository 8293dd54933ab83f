// Where the operator's file is, and where a user's, or a daemon's, own state is kept.
#pragma once

#include <string>

#include "base/result.h"

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

// A daemon's. Of root's, private clones lie in it, to which each workspace's owner must come through.
Status make_state_folder(const std::string& path);

}  // namespace sallyport::session
