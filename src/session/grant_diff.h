// What is different in another grant, for people.
#pragma once

#include <string>
#include <vector>

#include "session/grant_plan.h"

namespace sallyport::session {

// Lines about rules, and their bytes: a policy may have thousands of rules, and a daemon of sessions.
inline constexpr std::size_t kMaxChangeLines = 10;
inline constexpr std::size_t kMaxChangeLineBytes = 100;

// "+ [[git]] ..." of a rule that is new, "- ..." of one that is gone; then what of the rest is another. A
// rule that only moved is none. Never empty when the plans differ in what processes go by.
std::vector<std::string> changes_in_words(const GrantPlan& before, const GrantPlan& after);

}  // namespace sallyport::session
