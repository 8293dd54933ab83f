// [limits] of either file: what a session may use.
#pragma once

#include "config/config.h"
#include "config/toml_document.h"

namespace sallyport::config {

// What the table does not name stays in `into` as it is.
void read_limits(const Value& table, policy::Limits& into, Problems& problems);

}  // namespace sallyport::config
