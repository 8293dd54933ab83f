#include "vault/vault.h"

#include <algorithm>
#include <utility>

#include "upstream/connector.h"
#include "vault/service.h"
#include "vault/source.h"
#include "wire/grant_codec.h"
#include "wire/messages.h"
#include "wire/sealed.h"

namespace sallyport::vault {
namespace {

Result<wire::ToVault> read_message(const os::Packet& packet) {
  auto message = wire::decode_to_vault(packet.bytes);
  if (message && wire::descriptor_count(*message) != packet.fds.size()) {
    return fail(Reason::Internal, "control message: another number of descriptors");
  }
  return message;
}

// The first message and its grant.
struct Start {
  std::string session;
  std::uint64_t uses_left;
  policy::Grant grant;
};

net::Task<Result<Start>> receive_start(net::Worker& worker, net::PacketChannel& warden) {
  auto packet = co_await net::receive_within(worker, warden, wire::kStartLimit);
  if (!packet) co_return fail(std::move(packet));
  if (!*packet) co_return fail(Reason::SessionEnded, "the warden said nothing");
  auto message = read_message(**packet);
  if (!message) co_return fail(std::move(message));
  auto* start = std::get_if<wire::VaultStart>(&*message);
  if (start == nullptr) co_return fail(Reason::Internal, "control message: not a start");
  auto grant = wire::read_grant((*packet)->fds.front());
  if (!grant) co_return fail(std::move(grant));
  co_return Start{std::move(start->session), start->uses_left, std::move(*grant)};
}

class ServingVault final : public Vault {
 public:
  ServingVault(net::Worker& worker, Start start, std::unique_ptr<net::PacketChannel> warden)
      : session_(std::move(start.session)),
        uses_left_(start.uses_left),
        grant_(std::make_shared<const policy::Grant>(std::move(start.grant))),
        warden_(std::move(warden)),
        worker_(worker) {}

  Status connect_with(upstream::Environment& environment) {
    environment.resolver->use(grant_->resolvers);
    auto connector =
        upstream::Connector::make(worker_, *environment.resolver, grant_, environment.system_roots.get());
    if (!connector) return fail(std::move(connector));
    connector_ = std::move(*connector);
    service_ = std::make_unique<Service>(
        worker_,
        Service::Setup{
            .session = session_,
            .grant = grant_,
            .open =
                [this](upstream::Request request, upstream::Credential credential) {
                  return connector_->open(std::move(request), std::move(credential));
                },
            .report = [this](audit::Event event) { return send(wire::VaultEvent{std::move(event)}); },
            .limits = {.silence = lane_silence(grant_->timeouts)},
            .uses_left = uses_left_});
    return {};
  }

  net::Task<Status> serve() override {
    if (auto sent = send(wire::Ready{}); !sent) co_return sent;
    for (;;) {
      auto packet = co_await warden_->receive();
      if (!packet) co_return fail(std::move(packet));
      if (!*packet) co_return Status();
      auto message = read_message(**packet);
      if (!message) co_return fail(std::move(message));
      if (auto done = obey(*message, std::move((*packet)->fds)); !done) co_return done;
    }
  }

 private:
  Status send(const wire::FromVault& message) { return warden_->send(wire::encode(message), {}); }

  Status obey(const wire::ToVault& message, std::vector<Fd> fds) {
    if (const auto* credential = std::get_if<wire::VaultCredential>(&message)) {
      return send(wire::CredentialLoaded{credential->name, load(*credential, fds)});
    }
    if (std::holds_alternative<wire::VaultGate>(message)) {
      service_->use_gate(std::move(fds.front()));
      return {};
    }
    return fail(Reason::Internal, "control message: a second start");
  }

  // "", or why it could not be loaded. Whatever happens, the old value is not used any more, and neither are
  // the connections that were opened with it.
  std::string load(const wire::VaultCredential& message, std::span<const Fd> fds) {
    service_->drop_credential(message.name);
    connector_->drop_credential(message.name);
    if (!message.problem.empty()) return message.problem;
    const bool named = std::ranges::any_of(
        grant_->git, [&](const policy::GitRule& rule) { return rule.credential == message.name; });
    if (!named) return "no rule of this session names it";
    auto token = read_credential(fds.front());
    if (!token) return token.error().detail;
    service_->set_credential(message.name, std::move(*token));
    return "";
  }

  std::string session_;
  std::uint64_t uses_left_;
  std::shared_ptr<const policy::Grant> grant_;
  std::unique_ptr<net::PacketChannel> warden_;
  net::Worker& worker_;
  std::unique_ptr<upstream::Connector> connector_;
  std::unique_ptr<Service> service_;
};

}  // namespace

net::Task<Result<std::unique_ptr<Vault>>> Vault::begin(net::Worker& worker,
                                                       upstream::Environment& environment,
                                                       std::unique_ptr<net::PacketChannel> warden) {
  auto start = co_await receive_start(worker, *warden);
  if (!start) co_return fail(std::move(start));
  auto vault = std::make_unique<ServingVault>(worker, *std::move(start), std::move(warden));
  if (auto connected = vault->connect_with(environment); !connected) co_return fail(std::move(connected));
  co_return vault;
}

}  // namespace sallyport::vault
