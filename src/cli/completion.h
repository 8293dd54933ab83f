// `sallyport completion`: what a shell completes, generated from the command line's own definition.
#pragma once

#include <string>
#include <string_view>

#include "cli/words.h"

namespace sallyport::cli {

// For "bash", "zsh" or "fish". Sessions are completed by asking the daemon; what stands behind "--", as
// commands and files.
std::string completion_script(const CommandWords& root, std::string_view shell);

}  // namespace sallyport::cli
