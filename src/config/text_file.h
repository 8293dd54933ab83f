// Reading a whole text file by its path, with messages for the person who named it.
#pragma once

#include <cstddef>
#include <expected>
#include <string>

#include "config/config.h"

namespace sallyport::config {

struct TextFile {
  std::string path;  // of the very file that was read, without links, as the kernel has it
  std::string text;
};

// A regular file of at most `max_bytes` that not everybody may write. Symbolic links are followed. The
// problem's place is `place` and its message begins with `what` ("the policy file").
std::expected<TextFile, Problem> read_text_file(const std::string& path, const Place& place,
                                                const std::string& what, std::size_t max_bytes);

}  // namespace sallyport::config
