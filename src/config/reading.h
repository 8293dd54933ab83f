// What the readers of both files share.
#pragma once

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

}  // namespace sallyport::config
