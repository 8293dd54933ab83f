// What every session has, be it a sandbox's or one on the host: a part of the audit log, and an authority of
// its own.
#pragma once

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

// For the user. What died leaves nothing behind, so that trying again is all there is to do.
std::string failure_text(const Error& error);

}  // namespace sallyport::session
