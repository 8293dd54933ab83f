// Where a grant comes from: the two files and the options of the command line, loaded and joined.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "config/config.h"

namespace sallyport::config {

// A file that the user named must be there; one at its usual place may be missing, and is then empty.
enum class Presence : std::uint8_t { Usual, Named };

struct Sources {
  std::string policy_path;  // --policy, or sallyport.toml of the working directory
  Presence policy = Presence::Usual;
  std::string config_path;  // --config, or the operator's file at its usual place
  Presence config = Presence::Usual;
  std::vector<std::string> git_options;  // HOST/OWNER/REPO[:push]
};

struct Loaded {
  policy::Grant grant;
  OperatorConfig config;
};

std::expected<Loaded, Problems> load(const Sources& sources);

// Every problem on a line of its own.
std::string text_of(const Problems& problems);

}  // namespace sallyport::config
