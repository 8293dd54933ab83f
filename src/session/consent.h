// Whether a policy file may have what it asks for. One that lets a sandbox use a credential needs the user's
// consent, once for these bytes at this place, unless the operator's file approves each such rule: otherwise
// an agent, or a cloned repository, would write its own permissions for the next run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "config/sources.h"

namespace sallyport::session {

enum class ConsentState : std::uint8_t { NotNeeded, Given, Never, Changed };
std::string_view name(ConsentState state);  // "never", as JSON has it

struct Consent {
  ConsentState state = ConsentState::Never;
  std::string trusted_text;  // Changed: what the file said when it was trusted

  bool missing() const { return state == ConsentState::Never || state == ConsentState::Changed; }
};

// Looks into the store only when the file needs consent.
Result<Consent> find_consent(const config::Loaded& loaded, const std::string& trust_folder);

// How much of what a stranger wrote is shown.
struct ConsentLimits {
  std::size_t rules;
  std::size_t diff_lines;
  std::size_t line_bytes;
};
// For the message that goes from the warden to the command line, and for whoever is about to decide.
inline constexpr ConsentLimits kShort{.rules = 20, .diff_lines = 60, .line_bytes = 200};
inline constexpr ConsentLimits kFull{.rules = 1'000, .diff_lines = 4'000, .line_bytes = 1'000};

// The changes since the file was trusted, or that it never was, and every rule that uses a credential.
// Control characters are escaped, what looks like a token is masked, what is left out is said.
std::string describe(const config::PolicySource& policy, const Consent& consent, const ConsentLimits& limits);

// "sallyport policy trust '/path/with a space'", for a shell.
std::string trust_command(const config::Sources& sources, const config::PolicySource& policy);

// Why a start without consent stops, and what to do.
std::string stop_text(const config::Sources& sources, const config::PolicySource& policy,
                      const Consent& consent);

}  // namespace sallyport::session
