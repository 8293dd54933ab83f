#include "gate/gate.h"

#include <chrono>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "dns/server.h"
#include "dns/synthetic.h"
#include "egress/intercept.h"
#include "forward/limited_opener.h"
#include "forward/live.h"
#include "forward/usage.h"
#include "gate/doors.h"
#include "gate/front.h"
#include "gate/generation.h"
#include "gate/packet_log.h"
#include "gate/recorder.h"
#include "net/certificate.h"
#include "net/dial.h"
#include "net/packet_channel.h"
#include "net/tls.h"
#include "os/unix_socket.h"
#include "vault/client.h"
#include "wire/grant_codec.h"
#include "wire/sealed.h"

namespace sallyport::gate {
namespace {

std::unexpected<Error> misspoken(std::string_view what) {
  return fail(Reason::Internal, "the warden sent " + std::string(what));
}

Result<std::unique_ptr<egress::Interceptor>> make_interceptor(net::Worker& worker,
                                                              const wire::GateStart& start) {
  auto ca = net::key_pair_from_pem(start.ca_certificate_pem, start.ca_key_pem);
  if (!ca) return fail(std::move(ca));
  return egress::Interceptor::make(worker, *std::move(ca));
}

// A gate keeps all of a grant but its rules, its hosts and its name servers.
bool fits_this_gate(const policy::Grant& present, const policy::Grant& next) {
  return next.limits == present.limits && next.timeouts == present.timeouts;
}

// The first message and its grant.
struct Start {
  wire::GateStart message;
  policy::Grant grant;
};

net::Task<Result<Start>> receive_start(net::Worker& worker, net::PacketChannel& warden) {
  auto packet = co_await net::receive_within(worker, warden, wire::kStartLimit);
  if (!packet) co_return fail(std::move(packet));
  if (!*packet) co_return fail(Reason::SessionEnded, "the warden said nothing");
  auto message = wire::decode_to_gate((*packet)->bytes);
  if (!message) co_return fail(std::move(message));
  auto* start = std::get_if<wire::GateStart>(&*message);
  if (start == nullptr || (*packet)->fds.size() != 1) co_return misspoken("no start first");
  auto grant = wire::read_grant((*packet)->fds.front());
  if (!grant) co_return fail(std::move(grant));
  co_return Start{std::move(*start), *std::move(grant)};
}

}  // namespace

// Each part borrows from those above it.
struct Gate::Parts {
  Parts(net::Worker& home, upstream::Environment& shared, const std::string& session,
        const policy::Grant& grant, std::unique_ptr<egress::Interceptor> made,
        std::unique_ptr<net::PacketChannel> warden)
      : worker(home),
        environment(shared),
        interceptor(std::move(made)),
        channel(std::move(warden)),
        recorder(worker, *channel),
        vault(vault::Client::make(worker, session, grant.timeouts)),
        usage(grant.limits),
        limited_vault(*vault, usage),
        addresses(grant),
        dns(worker, grant, addresses, recorder),
        front({worker, in_force, addresses, dns, *interceptor}),
        doors(worker, front, dns, recorder, grant.limits.connections) {}

  net::Worker& worker;
  upstream::Environment& environment;
  std::unique_ptr<egress::Interceptor> interceptor;
  std::unique_ptr<net::PacketChannel> channel;
  Recorder recorder;
  std::unique_ptr<vault::Client> vault;
  forward::Usage usage;
  forward::LimitedOpener limited_vault;
  forward::Live live;
  GatewaysInForce in_force;
  dns::SyntheticAddresses addresses;
  dns::Server dns;  // its grant is that of in_force
  Front front;
  Doors doors;
  bool doors_open = false;

  Status put_in_force(policy::Grant grant) {
    auto next = gate::put_in_force(
        {worker, *environment.resolver, environment.system_roots.get(), recorder, usage, live, limited_vault},
        std::make_shared<const policy::Grant>(std::move(grant)));
    if (!next) return fail(std::move(next));
    environment.resolver->use((*next)->git.grant.resolvers);
    dns.use((*next)->git.grant);
    in_force = *std::move(next);
    return {};
  }

  // One for each message of the warden.
  Status take(const wire::GateStart& /*message*/, std::vector<Fd>&& /*fds*/) {
    return misspoken("a second start");
  }
  // What ends is said behind the word that the grant is in force: the log has them in this order.
  Status take(const wire::GateGrant& /*message*/, std::vector<Fd>&& fds) {
    auto grant = wire::read_grant(fds.front());
    if (!grant) return fail(std::move(grant));
    const GatewaysInForce before = in_force;
    if (!fits_this_gate(before->git.grant, *grant)) return misspoken("a grant for another gate");
    if (Status made = put_in_force(*std::move(grant)); !made) return made;
    addresses.add(in_force->git.grant);
    if (Status sent = channel->send(wire::encode(wire::FromGate(wire::GrantTaken{})), {}); !sent) return sent;
    live.judge_again(before->git.grant, in_force->git.grant);
    return {};
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

net::Task<Result<std::unique_ptr<Gate>>> Gate::begin(net::Worker& worker, upstream::Environment& environment,
                                                     std::unique_ptr<net::PacketChannel> warden) {
  auto start = co_await receive_start(worker, *warden);
  if (!start) co_return fail(std::move(start));
  co_return make(worker, environment, start->message, std::move(start->grant), std::move(warden));
}

Result<std::unique_ptr<Gate>> Gate::make(net::Worker& worker, upstream::Environment& environment,
                                         const wire::GateStart& start, policy::Grant grant,
                                         std::unique_ptr<net::PacketChannel> warden) {
  auto interceptor = make_interceptor(worker, start);
  if (!interceptor) return fail(std::move(interceptor));
  auto parts = std::make_unique<Parts>(worker, environment, start.session, grant, *std::move(interceptor),
                                       std::move(warden));
  if (Status made = parts->put_in_force(std::move(grant)); !made) return fail(std::move(made));
  return std::unique_ptr<Gate>(new Gate(std::move(parts)));
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

}  // namespace sallyport::gate
