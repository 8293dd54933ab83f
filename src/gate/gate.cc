#include "gate/gate.h"

#include <chrono>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "dns/server.h"
#include "dns/synthetic.h"
#include "egress/intercept.h"
#include "egress/tunnels.h"
#include "forward/limited_opener.h"
#include "forward/usage.h"
#include "gate/doors.h"
#include "gate/front.h"
#include "gate/packet_log.h"
#include "gate/recorder.h"
#include "net/certificate.h"
#include "net/dial.h"
#include "net/packet_channel.h"
#include "os/unix_socket.h"
#include "upstream/connector.h"
#include "upstream/direct.h"
#include "vault/client.h"
#include "wire/grant_codec.h"
#include "wire/sealed.h"

namespace sallyport::gate {
namespace {

std::unexpected<Error> misspoken(std::string_view what) {
  return fail(Reason::Internal, "the warden sent " + std::string(what));
}

// What is made by steps that can fail, before the rest is put on top of it.
struct Foundation {
  std::unique_ptr<net::Resolver> resolver;
  std::unique_ptr<upstream::Connector> connector;
  std::unique_ptr<egress::Interceptor> interceptor;
};

Result<Foundation> lay_foundation(net::Worker& worker, const wire::GateStart& start,
                                  std::shared_ptr<const policy::Grant> grant) {
  auto ca = net::key_pair_from_pem(start.ca_certificate_pem, start.ca_key_pem);
  if (!ca) return fail(std::move(ca));
  auto interceptor = egress::Interceptor::make(worker, *std::move(ca));
  if (!interceptor) return fail(std::move(interceptor));
  auto resolver = net::Resolver::make(worker, grant->resolvers);
  if (!resolver) return fail(std::move(resolver));
  auto connector = upstream::Connector::make(worker, **resolver, std::move(grant));
  if (!connector) return fail(std::move(connector));
  return Foundation{*std::move(resolver), *std::move(connector), *std::move(interceptor)};
}

}  // namespace

// Each part borrows from those above it.
struct Gate::Parts {
  Parts(net::Worker& home, const std::string& session, std::shared_ptr<const policy::Grant> shared_grant,
        Foundation made, Fd control)
      : worker(home),
        grant(std::move(shared_grant)),
        foundation(std::move(made)),
        channel(net::PacketChannel::make(worker, std::move(control))),
        recorder(worker, *channel),
        vault(vault::Client::make(worker, session, grant->timeouts)),
        direct(*foundation.connector),
        usage(grant->limits),
        limited_vault(*vault, usage),
        limited_direct(direct, usage),
        git{*grant, recorder, limited_vault, limited_direct},
        http{*grant, recorder, limited_direct},
        addresses(*grant),
        dns(worker, *grant, addresses, recorder),
        tunnels(worker, *foundation.resolver, *grant, recorder, usage),
        front({worker, {git, http, usage}, addresses, dns, *foundation.interceptor, tunnels}),
        doors(worker, front, dns, recorder, grant->limits.connections) {}

  net::Worker& worker;
  std::shared_ptr<const policy::Grant> grant;  // owners: this and the connector
  Foundation foundation;
  std::unique_ptr<net::PacketChannel> channel;
  Recorder recorder;
  std::unique_ptr<vault::Client> vault;
  upstream::Direct direct;
  forward::Usage usage;
  forward::LimitedOpener limited_vault;
  forward::LimitedOpener limited_direct;
  git::Context git;
  egress::HttpContext http;
  dns::SyntheticAddresses addresses;
  dns::Server dns;
  egress::Tunnels tunnels;
  Front front;
  Doors doors;
  bool doors_open = false;

  // One for each message of the warden.
  Status take(const wire::GateStart& /*message*/, std::vector<Fd>&& /*fds*/) {
    return misspoken("a second start");
  }
  Status take(const wire::GateDoors& message, std::vector<Fd>&& fds) {
    if (std::exchange(doors_open, true)) return misspoken("doors twice");
    return doors.open(message, std::move(fds));
  }
  Status take(const wire::GateHostDoors& message, std::vector<Fd>&& fds) {
    if (std::exchange(doors_open, true)) return misspoken("doors twice");
    return doors.open(message, std::move(fds));
  }
  Status take(const wire::GatePacketLog& /*message*/, std::vector<Fd>&& fds) {
    worker.spawn("the packet log", watch_packet_log(worker, std::move(fds.front()), recorder));
    return {};
  }
  Status take(const wire::GateVault& /*message*/, std::vector<Fd>&& fds) {
    vault->use_channel(std::move(fds.front()));
    return {};
  }
  Status take(const wire::GateProbe& message, std::vector<Fd>&& /*fds*/) {
    if (!message.armed) {
      front.arm(std::nullopt);
      return {};
    }
    // An empty line would be every connection's.
    if (message.probe_line.empty() || message.door_line.empty()) return misspoken("an empty probe");
    front.arm(Probe{message.probe_line, message.door_line});
    return {};
  }
  Status take(const wire::AuditWritten& message, std::vector<Fd>&& /*fds*/) {
    recorder.written(message.number, message.written);
    return {};
  }
};

Gate::Gate(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Gate::~Gate() = default;

Result<std::unique_ptr<Gate>> Gate::make(net::Worker& worker, const wire::GateStart& start,
                                         policy::Grant grant, Fd control) {
  auto shared = std::make_shared<const policy::Grant>(std::move(grant));
  auto foundation = lay_foundation(worker, start, shared);
  if (!foundation) return fail(std::move(foundation));
  return std::unique_ptr<Gate>(new Gate(std::make_unique<Parts>(worker, start.session, std::move(shared),
                                                                *std::move(foundation), std::move(control))));
}

net::Task<Status> Gate::serve() {
  if (Status sent = parts_->channel->send(wire::encode(wire::FromGate(wire::Ready{})), {}); !sent) {
    co_return sent;
  }
  Status status;
  while (status) {
    auto packet = co_await parts_->channel->receive();
    if (packet && !*packet) break;  // the warden has ended, and so does the session
    status = packet ? handle(**std::move(packet)) : fail(std::move(packet));
  }
  parts_->recorder.end();
  co_return status;
}

Status Gate::handle(os::Packet packet) {
  auto message = wire::decode_to_gate(packet.bytes);
  if (!message) return fail(std::move(message));
  if (wire::descriptor_count(*message) != packet.fds.size()) {
    return misspoken("another number of descriptors than its message has");
  }
  return std::visit([&](const auto& known) { return parts_->take(known, std::move(packet.fds)); }, *message);
}

Result<Start> receive_start(const Fd& control) {
  auto packet = os::recv_packet_within(control.get(), wire::kStartLimit);
  if (!packet) return fail(std::move(packet));
  auto message = wire::decode_to_gate(packet->bytes);
  if (!message) return fail(std::move(message));
  auto* start = std::get_if<wire::GateStart>(&*message);
  if (start == nullptr || packet->fds.size() != 1) return misspoken("no start first");
  auto grant = wire::read_grant(packet->fds.front());
  if (!grant) return fail(std::move(grant));
  return Start{std::move(*start), *std::move(grant)};
}

}  // namespace sallyport::gate
