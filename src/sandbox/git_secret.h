// Is there a credential in this piece of git configuration? Pure judgements over text; what to read is
// git_secret_search.h's. Whatever is said of a secret here holds no byte of it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sandbox/git_config.h"

namespace sallyport::sandbox {

struct GitSecret {
  std::string shown;   // "remote.origin.url = https://***@github.com/acme/widget"
  std::string remedy;  // what to do: a command, or words
};

// The entry's value or its subsection ([url "https://TOKEN@host/"]).
std::optional<GitSecret> secret_in(const GitConfigEntry& entry);

// Any line of text, comments too: a URL with userinfo, a token by its shape, an Authorization header.
std::optional<GitSecret> secret_in_line(std::string_view line);

// A line of a reflog or of FETCH_HEAD, as far as git itself wrote a URL into it. What people write into
// messages is theirs.
std::optional<GitSecret> secret_in_log_line(std::string_view line);

// Does `text` hold a URL with userinfo? That ssh URLs name a user is no secret, unless there is a password.
bool holds_userinfo(std::string_view text);

// The URL alone, without its userinfo; nullopt when it cannot be told apart for sure.
std::optional<std::string> without_userinfo(std::string_view url);

// Files that the entry makes git read: where there is a credential in them. `credential.helper = store --file
// X`, `http.cookieFile`, `http.sslKey`, ... The path as it is written.
std::optional<std::string> secret_file_of(const GitConfigEntry& entry);
// `include.path` and `includeIf.*.path`, whatever the condition.
std::optional<std::string> included_file_of(const GitConfigEntry& entry);

}  // namespace sallyport::sandbox
