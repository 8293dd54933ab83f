// What the readers of both files share.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "config/config.h"
#include "config/table_reader.h"

namespace sallyport::config {

// version = 1, required.
void check_version(TableReader& root, Problems& problems);

// Lower-case letters, digits, '-' and '_', a letter first, at most kMaxCredentialNameBytes: no token in use
// looks like that, so a token written in a name's place is refused without being shown.
bool is_credential_name(std::string_view text);
// The problem with a text that is not one.
Problem bad_credential_name(const Place& place);

// What the operator's file says, or what is known of the host.
policy::HostKind kind_of(const OperatorConfig& config, const policy::HostName& host);

// A pattern of a rule, parsed with its host's kind.
Result<policy::RepoPattern> parse_pattern(std::string_view text, const OperatorConfig& config);

// The list of tables [[key]], or nullptr; `each` says what one of them is: "a rule".
const Value* find_list(TableReader& root, const Value& document, std::string_view key, std::string_view each,
                       Problems& problems);

// What to do about a pattern that is none; may be empty.
std::string repo_remedy(std::string_view text);

// The keys that a rule and an approval share, both required.
std::optional<policy::RepoPattern> read_repo(TableReader& rule, const OperatorConfig& config,
                                             Problems& problems);
std::optional<policy::Access> read_access(TableReader& rule, Problems& problems);

}  // namespace sallyport::config
