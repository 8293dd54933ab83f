#include "session/groundwork.h"

#include <chrono>
#include <utility>

#include "net/certificate.h"

namespace sallyport::session {

Result<audit::Sink> open_audit_log(const std::string& path, const std::string& session) {
  auto sink = audit::Sink::open(path, [] { return std::chrono::system_clock::now(); });
  if (!sink) return fail(std::move(sink));
  if (auto status = sink->begin_session(session); !status) return fail(std::move(status));
  return sink;
}

Result<SessionCa> make_authority(const std::string& session) {
  auto ca = net::make_session_ca(session);
  if (!ca) return fail(std::move(ca));
  auto certificate = net::certificate_pem(*ca->certificate);
  if (!certificate) return fail(std::move(certificate));
  auto key = net::private_key_pem(*ca->key);
  if (!key) return fail(std::move(key));
  return SessionCa{std::move(*certificate), std::move(*key)};
}

audit::Event session_start(std::string detail) {
  audit::Event event;
  event.kind = audit::Kind::SessionStart;
  event.detail = std::move(detail);
  return event;
}

audit::Event session_end(const std::optional<Error>& failure, const std::string& how) {
  audit::Event event;
  event.kind = audit::Kind::SessionEnd;
  event.reason = failure ? failure->reason : Reason::None;
  event.detail = failure ? failure->detail : how;
  return event;
}

std::string failure_text(const Error& error) {
  if (error.reason != Reason::ProcessDied) return error.detail;
  return error.detail + ". Nothing is left running: run the same command again";
}

}  // namespace sallyport::session
