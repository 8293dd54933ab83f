#include "session/serve_session.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <utility>

#include "base/random.h"
#include "base/text.h"
#include "sandbox/profile.h"
#include "session/host_doors.h"
#include "wire/grant_codec.h"

namespace sallyport::session {

ServeSession::ServeSession(os::EventLoop& loop, Gateway& gateway, ServeRequest request, Callbacks callbacks)
    : loop_(loop),
      gateway_(gateway),
      request_(std::move(request)),
      callbacks_(std::move(callbacks)),
      id_(random_hex(16)),
      regrant_({.plan = [this] { return plan_grant(request_.sources); },
                .on_notice = [this](const std::string& text) { callbacks_.on_notice(text); }}) {}

ServeSession::~ServeSession() {
  if (coalesce_timer_) loop_.cancel(*coalesce_timer_);
}

void ServeSession::start() {
  auto plan = plan_grant(request_.sources);
  if (!plan) return fail_session({Reason::SessionEnded, std::move(plan).error()});
  plan_ = std::move(*plan);
  if (plan_.grant.empty()) {
    callbacks_.on_notice("no policy: nothing is reachable. Write " + escaped(request_.sources.policy_path));
  }
  if (auto status = prepare(); !status) return fail_session(std::move(status).error());
}

Status ServeSession::prepare() {
  auto opened = open_host_doors(request_.doors, ::geteuid());
  if (!opened) return fail(std::move(opened));
  doors_ = std::move(opened->doors);
  addresses_ = std::move(opened->addresses);

  auto sink = open_audit_log(request_.audit_path, id_);
  if (!sink) return fail(std::move(sink));
  journal_.emplace(std::move(*sink), id_);
  coalesce_timer_ = loop_.every(audit::Coalescer::kInterval, [this] { journal_->tell_coalesced(); });
  auto ca = make_authority(id_);
  if (!ca) return fail(std::move(ca));
  ca_ = std::move(*ca);
  if (auto status = write_ca_file(); !status) return status;

  // Files that are read again may ask for the system's authorities.
  auto started = gateway_.start(service_identities({::geteuid(), ::getegid()}), true);
  if (!started) return started;
  services_.emplace(loop_, gateway_, *journal_,
                    Services::Setup{.session = id_,
                                    .encoded_grant = wire::encode_grant(plan_.grant),
                                    .ca_certificate_pem = ca_.certificate_pem,
                                    .ca_key_pem = ca_.key_pem,
                                    .credentials = plan_.credentials,
                                    .credentials_owner = ::geteuid()},
                    Services::Callbacks{
                        .on_usable = [this] { go(); },
                        .on_grant_in_force = [this] { regrant_.on_grant_in_force(); },
                        .on_grant_usable = [this] { regrant_.on_grant_usable(); },
                        .on_notice = [this](const std::string& text) { callbacks_.on_notice(text); },
                        .on_failure = [this](Error error) { fail_session(std::move(error)); },
                    });
  services_->start();

  auto recorded = journal_->append(session_start(fmt::format("served at {}", fmt::join(addresses_, ", "))));
  if (!recorded) return recorded;
  start_recorded_ = true;
  return services_->open_for_use();
}

// The system's authorities too, as in a sandbox: what is passed on untouched has certificates of theirs.
Status ServeSession::write_ca_file() {
  if (request_.ca_file.empty()) return {};
  auto roots = sandbox::read_system_roots();
  if (!roots) return fail(std::move(roots));
  const std::string bundle = *roots + ca_.certificate_pem;
  auto written = CaFile::write(request_.ca_file, bundle);
  if (!written) return fail(std::move(written));
  ca_file_.emplace(*std::move(written));
  return {};
}

// Connections that came before wait in the backlog: no door is open before its credentials are there.
void ServeSession::go() {
  services_->open_doors(std::move(doors_));
  callbacks_.on_ready(addresses_);
  regrant_.begin(plan_, *services_, *journal_);
}

void ServeSession::reload() {
  if (over_) return;
  regrant_.ask([this](const Regranted& done) {
    if (!over_) callbacks_.on_reloaded(done.problem);
  });
}

void ServeSession::end() {
  finish();
}

void ServeSession::abandon() {
  fail_session({Reason::SessionEnded, "the command line went away"});
}

void ServeSession::fail_session(Error error) {
  if (over_) return;
  failure_ = std::move(error);
  finish();
}

void ServeSession::finish() {
  if (std::exchange(over_, true)) return;
  regrant_.end();
  ca_file_.reset();
  if (!services_) return conclude();
  services_->stop([this] {
    journal_->end_open_requests({Reason::SessionEnded, "the session ended"});
    conclude();
  });
}

void ServeSession::conclude() {
  if (journal_) journal_->tell_coalesced();
  if (start_recorded_) (void)journal_->append(session_end(failure_, "ended by its user"));
  if (failure_) return callbacks_.on_failed(failure_text(*failure_));
  callbacks_.on_finished(journal_ ? journal_->summary().line() : "");
}

}  // namespace sallyport::session
