#include "gate/front.h"

#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "gate/requests.h"
#include "http/connection.h"
#include "http/reply.h"
#include "os/netns.h"
#include "os/reset.h"

namespace sallyport::gate {
namespace {

constexpr std::uint16_t kDnsPort = 53;

policy::IpAddress address_of(const os::Endpoint& endpoint) {
  return {endpoint.family == AF_INET6 ? policy::Family::V6 : policy::Family::V4, endpoint.address};
}

struct Refused {
  audit::Entry entry;
  std::string_view scheme;
  std::string destination;
  std::string host;
  std::uint16_t port;
};

audit::Event event_of(Refused refused) {
  audit::Event event;
  event.request = audit::new_request_id();
  event.entry = refused.entry;
  event.scheme = refused.scheme;
  event.destination = std::move(refused.destination);
  event.host = std::move(refused.host);
  event.port = refused.port;
  return event;
}

// Whose start is cut short asks for nothing: pre-flight itself may die in the middle of its line.
Error not_the_probe(const std::string& line, const Probe& probe) {
  if (probe.probe_line.starts_with(line))
    return {Reason::ClientClosed, "in the middle of pre-flight's probe"};
  return {Reason::BadRequest, "before the start, and not pre-flight's probe: " + escaped(line)};
}

// A line with its newline, or what came instead of one within `max_bytes`.
net::Task<std::string> read_line(net::Stream& stream, std::size_t max_bytes) {
  std::string line;
  while (line.size() < max_bytes && !line.ends_with('\n')) {
    char byte = 0;
    const auto got = co_await stream.read_some({&byte, 1});
    if (!got || *got == 0) break;
    line += byte;
  }
  co_return line;
}

}  // namespace

net::Task<> Front::serve(Fd connection, std::optional<os::Endpoint> destination) {
  if (!destination) {
    co_await refuse(std::move(connection), "", {Reason::DoorAddressed, ""});
    co_return;
  }
  if (probe_) {
    co_await serve_probe(std::move(connection), *destination);
    co_return;
  }
  const policy::IpAddress address = address_of(*destination);
  Target target{.destination = destination->text(), .port = destination->port, .host = std::nullopt};
  if (const policy::HostName* host = session_.addresses.host_at(address)) target.host = *host;
  if (destination->port == kDnsPort) {
    co_await session_.dns.serve_tcp(std::move(connection));
  } else if (address == dns::SyntheticAddresses::own() && destination->port == os::kSandboxProxyPort) {
    co_await serve_proxy(std::move(connection), std::move(target));
  } else if (target.host) {
    co_await serve_name(std::move(connection), std::move(target));
  } else if (destination->port == policy::kHttpsPort) {
    target.entry = audit::Entry::Tls;
    co_await serve_tls(std::move(connection), "", std::move(target));
  } else if (destination->port == policy::kHttpPort) {
    target.entry = audit::Entry::Http;
    co_await serve_plain_http(std::move(connection), "", std::move(target));
  } else {
    co_await refuse_address(std::move(connection), std::move(target), Reason::IpLiteral);
  }
}

// Where TLS or HTTP can say why, refusals are left to them.
net::Task<> Front::serve_name(Fd connection, Target target) {
  const auto decision = policy::decide(session_.grant(), policy::Connect{*target.host, target.port});
  if (decision.allowed() && decision.carriage == policy::Carriage::Raw) {
    target.entry = audit::Entry::Tcp;
    if (may_begin_tunnel(target)) {
      co_await carry(std::move(connection), "", std::move(target), decision);
    } else {
      co_await refuse_address(std::move(connection), std::move(target), Reason::TooMany);
    }
  } else if (target.port == policy::kHttpPort ||
             (decision.allowed() && decision.carriage == policy::Carriage::PlainHttp)) {
    target.entry = audit::Entry::Http;
    co_await serve_plain_http(std::move(connection), "", std::move(target));
  } else if (decision.allowed() || target.port == policy::kHttpsPort) {
    target.entry = audit::Entry::Tls;
    co_await serve_tls(std::move(connection), "", std::move(target));
  } else {
    co_await refuse_address(std::move(connection), std::move(target), decision.reason);
  }
}

net::Task<> Front::refuse(Fd connection, std::string destination, Error error) {
  os::reset_on_close(connection);
  co_await session_.recorder().refuse(event_of({audit::Entry::Tcp, "", std::move(destination), "", 0}),
                                      std::move(error));
}

net::Task<> Front::refuse_address(Fd connection, Target target, Reason reason) {
  os::reset_on_close(connection);
  std::string host = target.host ? target.host->str() : "";
  co_await session_.recorder().refuse(
      event_of({audit::Entry::Tcp, "", std::move(target.destination), std::move(host), target.port}),
      {reason, ""});
}

net::Task<> Front::serve_probe(Fd connection, os::Endpoint destination) {
  const Probe probe = *probe_;  // it may be disarmed meanwhile
  auto stream = net::make_socket_stream(session_.worker, std::move(connection), net::Peer::Client);
  stream->limit_total(kProbeLimit);
  const std::string line = co_await read_line(*stream, probe.probe_line.size());
  if (line == probe.probe_line) {
    if (co_await stream->write_all(probe.door_line)) static_cast<void>(co_await stream->shutdown_write());
    co_return;
  }
  co_await session_.recorder().refuse(
      event_of({audit::Entry::Tcp, "", destination.text(), "", destination.port}),
      not_the_probe(line, probe));
}

// Who named a host already, by its address or in a CONNECT, must stay with it. Any other address says
// nothing: the name is what is dialled.
Result<policy::Decision> Front::judge(const policy::HostName& host, const Target& target) const {
  const auto decision = policy::decide(session_.grant(), policy::Connect{host, target.port});
  if (!decision.allowed()) return fail(decision.reason, "");
  if (!target.host || *target.host == host) return decision;
  return fail(Reason::SniMismatch, "the connection is to " + target.host->str());
}

net::Task<> Front::serve_tls(Fd connection, std::string early, Target target) {
  auto peeked = co_await egress::peek_hello(session_.worker, std::move(connection), std::move(early));
  if (!peeked) {
    co_await refuse_handshake(std::move(target), std::move(peeked).error());
    co_return;
  }
  const policy::HostName host = peeked->hello.host;
  auto decision = judge(host, target);
  const bool spliced = decision && decision->carriage == policy::Carriage::Splice;
  if (spliced && peeked->hello.has_ech) {
    // The name that can be read is not the one that a CDN would go by.
    decision = fail(Reason::EchRefused, "");
  } else if (spliced && !may_begin_tunnel(target)) {
    decision = fail(Reason::TooMany, std::string(kTooFast));
  }
  if (!decision && is_told_in_tls(host, target, decision.error().reason)) {
    co_await refuse_in_tls(*std::move(peeked), std::move(target));
  } else if (!decision) {
    const Reason reason = decision.error().reason;
    co_await refuse_handshake(std::move(target), {std::move(decision).error(), host.str()});
    egress::send_alert(peeked->socket, reason);
  } else if (decision->carriage == policy::Carriage::Inspect) {
    co_await serve_inspected(*std::move(peeked), std::move(target));
  } else {
    target.host = host;
    co_await carry(std::move(peeked->socket), std::move(peeked->bytes), std::move(target), *decision);
  }
}

bool Front::may_begin_tunnel(const Target& target) const {
  return target.entry == audit::Entry::Proxy || session_.usage().requests.take(net::Clock::now());
}

net::Task<> Front::refuse_handshake(Target target, egress::HandshakeRefusal refusal) {
  co_await session_.recorder().refuse(
      event_of({target.entry, "https", std::move(target.destination), std::move(refusal.host), target.port}),
      std::move(refusal.error));
}

net::Task<> Front::serve_inspected(egress::PeekedHello peeked, Target target) {
  const auto judge_again = [this, &target](const policy::HostName& host) -> Status {
    auto decision = judge(host, target);
    if (!decision) return fail(std::move(decision));
    return {};
  };
  auto tls = co_await session_.interceptor.accept(std::move(peeked), judge_again);
  if (!tls) {
    co_await refuse_handshake(std::move(target), std::move(tls).error());
    co_return;
  }
  http::Connection connection(*tls->stream, target.port, session_.grant().timeouts.request_head);
  static_cast<void>(co_await serve_requests(session_.in_force,
                                            {.entry = target.entry,
                                             .destination = std::move(target.destination),
                                             .scheme = policy::Scheme::Https,
                                             .port = target.port,
                                             .host = tls->host},
                                            connection));
}

net::Task<> Front::serve_plain_http(Fd connection_fd, std::string early, Target target) {
  auto stream = net::make_socket_stream(session_.worker, std::move(connection_fd), net::Peer::Client);
  http::Connection connection(*stream, target.port, session_.grant().timeouts.request_head);
  connection.begin_with(std::move(early));
  static_cast<void>(co_await serve_requests(session_.in_force,
                                            {.entry = target.entry,
                                             .destination = std::move(target.destination),
                                             .scheme = policy::Scheme::Http,
                                             .port = target.port,
                                             .host = std::move(target.host)},
                                            connection));
}

net::Task<> Front::carry(Fd connection, std::string early, Target target, policy::Decision decision) {
  std::string rule =
      decision.rule ? policy::source_of(session_.grant(), *decision.rule).str() : std::string();
  const GatewaysInForce gateways = session_.in_force;
  co_await gateways->tunnels->carry({.entry = target.entry,
                                     .destination = std::move(target.destination),
                                     .host = *std::move(target.host),
                                     .port = target.port,
                                     .carriage = decision.carriage,
                                     .rule = std::move(rule)},
                                    std::move(connection), std::move(early));
}

}  // namespace sallyport::gate
