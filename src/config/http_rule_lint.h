// What is wrong with [[allow]], [[deny]] and [[tcp]] rules taken together: whoever wrote one that contradicts
// another, or that can never decide, expects something that will not happen.
#pragma once

#include "config/config.h"

namespace sallyport::config {

// `grant` is made of `policy`: its [[allow]], [[deny]] and [[tcp]] are the file's, in that order, and the
// file's [[git]] are its last. Costs about as much as the rules have hosts.
void lint_http_rules(const PolicyFile& policy, const policy::Grant& grant, Problems& problems);

}  // namespace sallyport::config
