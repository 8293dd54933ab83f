// A reader of git's configuration syntax (git-config(1), "Syntax"). It takes what git takes, tells the lines,
// runs nothing, follows no include, and says so when git would not read a file either.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sallyport::sandbox {

struct GitConfigEntry {
  std::string section;                    // lower case: "remote"
  std::optional<std::string> subsection;  // as written, "origin"; lower case in the old form [remote.origin]
  std::string name;                       // lower case: "url"
  std::optional<std::string> value;       // nullopt: the name stands alone, which is "true"
  std::size_t line = 0;                   // where the name stands, from 1

  std::string key() const;  // "remote.origin.url"
};

// Error::detail is "line N: what is wrong", without a byte of the text.
Result<std::vector<GitConfigEntry>> parse_git_config(std::string_view text);

// A value, or a subsection, in double quotes. Empty when it cannot be one line of text.
std::string git_quoted(std::string_view value);

}  // namespace sallyport::sandbox
