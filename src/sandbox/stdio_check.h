// What a command in a sandbox may have as a standard descriptor.
#pragma once

#include <optional>
#include <string>

namespace sallyport::sandbox {

// Why this descriptor would be a way out of the sandbox ("is a folder"), or nullopt.
std::optional<std::string> why_way_out(int fd);

}  // namespace sallyport::sandbox
