// What every session has, be it a sandbox's or one on the host: a part of the audit log, and an authority of
// its own.
#pragma once

#include <optional>
#include <string>

#include "audit/sink.h"
#include "base/result.h"

namespace sallyport::session {

// The audit log, without which nothing is let through, ready for the lines of `session`.
Result<audit::Sink> open_audit_log(const std::string& path, const std::string& session);

struct SessionCa {
  std::string certificate_pem;
  std::string key_pem;
};
Result<SessionCa> make_authority(const std::string& session);

// The first line of a session in the audit log.
audit::Event session_start(std::string detail);
// The last line of a session: why it failed, or `how` it ended.
audit::Event session_end(const std::optional<Error>& failure, const std::string& how);

// For the user. What died leaves nothing behind, so that trying again is all there is to do.
std::string failure_text(const Error& error);

}  // namespace sallyport::session
