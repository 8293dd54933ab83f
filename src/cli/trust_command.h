// `sallyport policy trust`: the user's consent to a policy file that uses credentials.
#pragma once

#include <boost/json/value.hpp>

#include "cli/command_line.h"
#include "session/consent.h"

namespace sallyport::cli {

// Returns the exit code.
int policy_trust(const TrustOptions& options);

// Before a run: asks the person at the terminal, if somebody is there, for the consent that the warden would
// miss. False: the answer was no, or could not be kept. In every other case the warden judges, by the bytes
// that it reads itself.
bool consent_before_run(const config::Sources& sources);

// For `policy check` and `policy explain`: {"state": ..., "command": ...}, and in words when a run would
// stop.
boost::json::value consent_json(const config::Sources& sources, const config::Loaded& loaded,
                                const session::Consent& consent);
void print_missing_consent(const config::Sources& sources, const config::Loaded& loaded,
                           const session::Consent& consent);

}  // namespace sallyport::cli
