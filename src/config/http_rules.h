// The rules of a policy that are not git's: [[allow]], [[deny]] and [[tcp]], as they are written.
#pragma once

#include <string>

#include "config/config.h"
#include "config/toml_document.h"

namespace sallyport::config {

void read_allow(const Value& table, const std::string& file, PolicyFile& policy, Problems& problems);
void read_deny(const Value& table, const std::string& file, PolicyFile& policy, Problems& problems);
void read_tcp(const Value& table, const std::string& file, PolicyFile& policy, Problems& problems);

}  // namespace sallyport::config
