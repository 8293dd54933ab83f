// Where the user's files are, by the XDG Base Directory Specification.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/command_line.h"
#include "config/sources.h"

namespace sallyport::cli {

struct Paths {
  std::string home;
  std::string working_directory;  // as the user's shell spells it, when that is true
  std::string config;             // the operator's file
  std::string state;              // a folder
  std::string audit;
  std::string trust;  // the folder of the user's consents
};

Result<Paths> find_paths();

// NAME=VALUE lines.
std::vector<std::string> own_environment();

// `path` as the user gave it, made absolute.
std::string absolute(const std::string& path, const Paths& paths);

config::Sources sources_of(const FileOptions& files, const Paths& paths);

}  // namespace sallyport::cli
