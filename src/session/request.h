// What the user of `sallyport run` asked for. Paths are absolute; nothing is read or checked yet.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/sources.h"
#include "container/specs.h"
#include "os/process.h"

namespace sallyport::session {

// A variable of the warden's environment, with a random value; the pre-flight proves that it stays outside.
inline constexpr char kCanaryVariable[] = "SALLYPORT_CANARY";

struct Request {
  // Whom a daemon makes the session for, when that is neither root nor the daemon's own user: whatever the
  // request names is found and read by that user's rights, and so it runs.
  std::optional<os::Ids> client;
  std::vector<std::string> command;
  std::string working_directory;  // the workspace
  std::string home;               // the caller's home directory, which is never shown to the sandbox

  config::Sources sources;
  std::vector<std::string> mounts;  // PATH[:ro]
  std::string image;                // of a container engine; "": the host's own system folders
  // Instead of all that: a container that runs already, by name or id. There is no workspace then.
  std::string adopted;
  container::Limits limits;  // of a container
  std::string audit_path;

  std::vector<std::string> environment;        // the caller's, NAME=VALUE; a sandbox gets a short list of it
  std::vector<std::string> extra_environment;  // NAME=VALUE of --env
  std::string state_folder;                    // where the user's own state is kept; private
  std::vector<std::string> daemon_folders;     // a daemon's own besides, which no sandbox may have
  std::optional<std::uint64_t> max_uses;       // of credentials, by requests
  bool private_git = false;                    // the sandbox gets a clone in the workspace's place
  bool terminal_on_stdin = false;              // standard input is a terminal that was made for the session
};

}  // namespace sallyport::session
