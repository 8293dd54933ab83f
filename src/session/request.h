// What the user of `sallyport run` asked for. Paths are absolute; nothing is read or checked yet.
#pragma once

#include <string>
#include <vector>

#include "config/sources.h"

namespace sallyport::session {

// A variable of the warden's environment, with a random value; the pre-flight proves that it stays outside.
inline constexpr char kCanaryVariable[] = "SALLYPORT_CANARY";

struct Request {
  std::vector<std::string> command;
  std::string working_directory;  // the workspace
  std::string home;               // the caller's home directory, which is never shown to the sandbox

  config::Sources sources;
  std::vector<std::string> mounts;  // PATH[:ro]
  std::string audit_path;

  std::vector<std::string> environment;        // the caller's, NAME=VALUE; a sandbox gets a short list of it
  std::vector<std::string> extra_environment;  // NAME=VALUE of --env
  std::string state_folder;                    // where the user's own state is kept; private
  std::vector<std::string> daemon_folders;     // a daemon's own besides, which no sandbox may have
  bool private_git = false;                    // the sandbox gets a clone in the workspace's place
  bool terminal_on_stdin = false;              // standard input is a terminal that was made for the session
};

}  // namespace sallyport::session
