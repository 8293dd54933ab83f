#include "session/services.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/visitor.h"
#include "wire/sealed.h"

namespace sallyport::session {
namespace {

// What each process may write into the log; anything else in its name would be a forgery.
bool gate_may_record(audit::Kind kind) {
  using enum audit::Kind;
  return kind == Begin || kind == End || kind == Refused || kind == Refs || kind == Alarm;
}
bool vault_may_record(audit::Kind kind) {
  return kind == audit::Kind::Credential || kind == audit::Kind::Alarm;
}

}  // namespace

Services::Services(os::EventLoop& loop, Gateway& gateway, Journal& journal, Setup setup, Callbacks callbacks)
    : journal_(journal),
      setup_(std::move(setup)),
      callbacks_(std::move(callbacks)),
      file_watcher_(gateway.file_watcher()),
      credentials_(make_credentials(setup_.credentials)),
      gate_(loop, gateway.gate(),
            {.on_start = [this] { greet_gate(); },
             .on_packet = [this](const os::Packet& packet) { on_gate_packet(packet); },
             .on_death =
                 [this](const std::string& how) {
                   on_death(how, "open connections");
                   journal_.end_open_requests({Reason::ProcessDied, how});
                 },
             .on_failure = [this](Error error) { give_up(std::move(error)); }}),
      vault_(loop, gateway.vault(),
             {.on_start = [this] { greet_vault(); },
              .on_packet = [this](const os::Packet& packet) { on_vault_packet(packet); },
              .on_death = [this](const std::string& how) { on_death(how, "requests with credentials"); },
              .on_failure = [this](Error error) { give_up(std::move(error)); }}) {}

std::unique_ptr<Credentials> Services::make_credentials(
    std::map<std::string, config::CredentialSource> sources) {
  return std::make_unique<Credentials>(file_watcher_, std::move(sources), setup_.credentials_owner,
                                       [this](const std::string& name, Fd file, const std::string& problem) {
                                         on_credential_file(name, std::move(file), problem);
                                       });
}

void Services::start() {
  vault_.open();
  gate_.open();
}

void Services::stop(std::function<void()> on_stopped) {
  gate_.finish([this, on_stopped = std::move(on_stopped)] { vault_.finish(on_stopped); });
}

// The vault first: from there to the gate's word nothing needs one that neither grant allows, and nothing
// that the old one allowed gets a credential any more.
Status Services::use(NewGrant next) {
  if (next.change.needs_vault) {
    next_credentials_ = make_credentials(next.credentials);
    if (auto status = next_credentials_->check(); !status) return status;
    if (auto status = next_credentials_->watch(); !status) return status;
  }
  next_ = std::move(next);
  awaited_ = Switch::Gate;
  vault_taken_away_ = next_->change.needs_vault;
  if (vault_taken_away_) {
    vault_.end([this] { switch_vault(); });
  } else {
    switch_gate();
  }
  return {};
}

void Services::switch_vault() {
  awaited_credentials_.clear();
  unopened_credentials_.clear();
  for (const auto& [name, source] : next_->credentials) awaited_credentials_.insert(name);
  credentials_ = std::move(next_credentials_);
  setup_.credentials = std::move(next_->credentials);
  switch_gate();
  vault_.open();
}

void Services::switch_gate() {
  const bool needs_another = next_->change.needs_gate;
  setup_.encoded_grant = std::move(next_->encoded_grant);
  next_.reset();
  if (needs_another) {
    gate_.end([this] { gate_.open(); });
  } else {
    give_gate_the_grant();
  }
}

// One that is being started again gets it with its start.
void Services::give_gate_the_grant() {
  auto grant = grant_file();
  if (!grant) return give_up(grant.error());
  if (gate_.running()) grant_came_with_start_ = false;
  gate_.send(wire::encode(wire::ToGate(wire::GateGrant{})), std::array{grant->get()});
}

void Services::on_gate_has_the_grant() {
  if (awaited_ != Switch::Gate) return;
  awaited_ = Switch::Vault;
  vault_taken_away_ = false;
  callbacks_.on_grant_in_force();
  if (grant_came_with_start_) journal_.end_open_requests({Reason::Revoked, "under another gate"});
  tell_grant_usable();
}

void Services::tell_grant_usable() {
  if (awaited_ != Switch::Vault || !awaited_credentials_.empty()) return;
  awaited_ = Switch::Done;
  callbacks_.on_grant_usable();
}

Result<Fd> Services::grant_file() const {
  return wire::to_memfd(setup_.encoded_grant);
}

void Services::greet_gate() {
  auto grant = grant_file();
  if (!grant) return give_up(grant.error());
  grant_came_with_start_ = true;
  gate_.send(wire::encode(
                 wire::ToGate(wire::GateStart{setup_.session, setup_.ca_certificate_pem, setup_.ca_key_pem})),
             std::array{grant->get()});
  if (probe_) gate_.send(wire::encode(wire::ToGate(*probe_)));
  if (doors_) send_doors();
  if (host_doors_) send_host_doors();
  if (packet_log_) send_packet_log();
  connect();
}

void Services::greet_vault() {
  auto grant = grant_file();
  if (!grant) return give_up(grant.error());
  const std::uint64_t uses_left = setup_.max_uses - std::min(setup_.max_uses, journal_.credential_uses());
  vault_.send(wire::encode(wire::ToVault(wire::VaultStart{setup_.session, uses_left})),
              std::array{grant->get()});
  if (in_use_) credentials_->open_all();
  connect();
}

void Services::connect() {
  if (!in_use_ || !gate_.running() || !vault_.running()) return;
  auto sockets = os::socket_pair(os::SocketKind::Packet);
  if (!sockets) return give_up(sockets.error());
  vault_.send(wire::encode(wire::ToVault(wire::VaultGate{})), std::array{sockets->first.get()});
  gate_.send(wire::encode(wire::ToGate(wire::GateVault{})), std::array{sockets->second.get()});
}

void Services::open_doors(os::Doors doors) {
  doors_ = std::move(doors);
  send_doors();
}

void Services::open_doors(HostDoors doors) {
  host_doors_ = std::move(doors);
  send_host_doors();
}

void Services::send_host_doors() {
  std::vector<int> fds;
  for (const Fd& fd : host_doors_->fds) fds.push_back(fd.get());
  gate_.send(wire::encode(wire::ToGate(host_doors_->message)), fds);
}

void Services::open_packet_log(Fd packet_log) {
  packet_log_ = std::move(packet_log);
  send_packet_log();
}

void Services::send_packet_log() {
  gate_.send(wire::encode(wire::ToGate(wire::GatePacketLog{})), std::array{packet_log_->get()});
}

void Services::send_doors() {
  wire::GateDoors message{doors_->mode, {}};
  std::vector<int> fds;
  for (const os::Listener& listener : doors_->listeners) {
    message.doors.push_back({listener.kind, listener.port});
    fds.push_back(listener.fd.get());
  }
  gate_.send(wire::encode(wire::ToGate(std::move(message))), fds);
}

void Services::set_probe(wire::GateProbe probe) {
  probe_ = std::move(probe);
  gate_.send(wire::encode(wire::ToGate(*probe_)));
}

Status Services::open_for_use() {
  in_use_ = true;
  for (const auto& [name, source] : setup_.credentials) awaited_credentials_.insert(name);
  if (auto status = credentials_->watch(); !status) return status;
  credentials_->open_all();
  connect();
  if (awaited_credentials_.empty()) {
    usable_ = true;
    callbacks_.on_usable();
  }
  return {};
}

void Services::on_credential_file(const std::string& name, Fd file, const std::string& problem) {
  if (!problem.empty() && !usable_) return give_up({Reason::CredentialUnavailable, problem});
  if (problem.empty()) {
    unopened_credentials_.erase(name);
  } else {
    unopened_credentials_.insert(name);
    callbacks_.on_notice(problem);
  }
  const std::string message = wire::encode(wire::ToVault(wire::VaultCredential{name, problem}));
  if (file) {
    vault_.send(message, std::array{file.get()});
  } else {
    vault_.send(message);
  }
}

void Services::on_credential_loaded(const wire::CredentialLoaded& loaded) {
  const bool is_known = unopened_credentials_.contains(loaded.name);
  if (!loaded.problem.empty() && !is_known) {
    const std::string text = fmt::format("credential '{}': {}", loaded.name, loaded.problem);
    if (!usable_) return give_up({Reason::CredentialUnavailable, text});
    callbacks_.on_notice(text);
  }
  awaited_credentials_.erase(loaded.name);
  if (!awaited_credentials_.empty()) return;
  if (usable_) return tell_grant_usable();
  usable_ = true;
  callbacks_.on_usable();
}

void Services::on_gate_packet(const os::Packet& packet) {
  auto message = wire::decode_from_gate(packet.bytes);
  if (!message) return give_up({Reason::Internal, "the gate sent a message that is none"});
  std::visit(Visitor{[this](const wire::Ready&) {
                       if (grant_came_with_start_) on_gate_has_the_grant();
                     },
                     [this](const wire::GrantTaken&) { on_gate_has_the_grant(); },
                     [this](const wire::AuditAppend& append) { record_for_gate(append); }},
             *message);
}

void Services::record_for_gate(const wire::AuditAppend& append) {
  audit::Event event = append.event;
  // The gate may hear that the vault hung up before it hears why.
  if (vault_taken_away_ && event.kind == audit::Kind::End && event.reason == Reason::VaultUnavailable) {
    event.reason = Reason::Revoked;
    event.detail = "the credentials changed";
  }
  const bool written = gate_may_record(event.kind) && journal_.append(event).has_value();
  if (append.number == wire::kNobodyWaits) return;
  gate_.send(wire::encode(wire::ToGate(wire::AuditWritten{append.number, written})));
}

void Services::on_vault_packet(const os::Packet& packet) {
  auto message = wire::decode_from_vault(packet.bytes);
  if (!message) return give_up({Reason::Internal, "the vault sent a message that is none"});
  std::visit(Visitor{[](const wire::Ready&) {},
                     [this](const wire::VaultEvent& vault) {
                       if (vault_may_record(vault.event.kind)) (void)journal_.append(vault.event);
                     },
                     [this](const wire::CredentialLoaded& loaded) { on_credential_loaded(loaded); }},
             *message);
}

void Services::on_death(const std::string& how, std::string_view lost) {
  journal_.alarm({Reason::ProcessDied, how});
  callbacks_.on_notice(
      fmt::format("{} and is started again; {} are lost: run again what failed in the sandbox", how, lost));
}

void Services::give_up(Error error) {
  callbacks_.on_failure(std::move(error));
}

}  // namespace sallyport::session
