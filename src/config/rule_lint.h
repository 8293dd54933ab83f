// Rules that can never decide anything: whoever wrote one expects something that will not happen.
#pragma once

#include <vector>

#include "config/config.h"

namespace sallyport::config {

// Duplicates, and rules whose every repository another rule decides (policy::decide: the fewest wildcards,
// then the earliest). `places[i]` is where `rules[i]` stands.
void lint_rules(const std::vector<policy::GitRule>& rules, const std::vector<Place>& places,
                Problems& problems);

}  // namespace sallyport::config
