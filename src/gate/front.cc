#include "gate/front.h"

#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "gate/requests.h"
#include "http/connection.h"
#include "http/reply.h"
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
  Error error;
};

audit::Event event_of(Refused refused) {
  audit::Event event;
  event.kind = audit::Kind::Refused;
  event.request = audit::new_request_id();
  event.entry = refused.entry;
  event.scheme = refused.scheme;
  event.destination = std::move(refused.destination);
  event.host = std::move(refused.host);
  event.port = refused.port;
  event.reason = refused.error.reason;
  event.detail = std::move(refused.error.detail);
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
  } else if (probe_) {
    co_await serve_probe(std::move(connection), *destination);
  } else if (destination->port == kDnsPort) {
    co_await session_.dns.serve_tcp(
        net::make_socket_stream(session_.worker, std::move(connection), net::Peer::Client));
  } else if (const auto* host = session_.addresses.host_at(address_of(*destination)); host != nullptr) {
    co_await serve_name(std::move(connection), *destination, *host);
  } else if (destination->port == policy::kHttpsPort) {
    co_await serve_tls(std::move(connection), *destination);
  } else if (destination->port == policy::kHttpPort) {
    co_await serve_plain_http(std::move(connection), *destination);
  } else {
    co_await refuse_address(std::move(connection), *destination, "", Reason::IpLiteral);
  }
}

// Where TLS or HTTP can say why, refusals are left to them.
net::Task<> Front::serve_name(Fd connection, os::Endpoint destination, policy::HostName host) {
  const auto decision = policy::decide(session_.git.grant, policy::Connect{host, destination.port});
  if (decision.allowed() && decision.carriage == policy::Carriage::Raw) {
    co_await carry(std::move(connection), destination, std::move(host), "");
  } else if (destination.port == policy::kHttpPort) {
    co_await serve_plain_http(std::move(connection), destination);
  } else if (decision.allowed() || destination.port == policy::kHttpsPort) {
    co_await serve_tls(std::move(connection), destination);
  } else {
    co_await refuse_address(std::move(connection), destination, host.str(), decision.reason);
  }
}

net::Task<> Front::refuse(Fd connection, std::string destination, Error error) {
  os::reset_on_close(connection);
  // Refused it is whether or not the line could be written.
  static_cast<void>(co_await session_.git.recorder.record(
      event_of({audit::Entry::Tcp, "", std::move(destination), "", 0, std::move(error)})));
}

net::Task<> Front::refuse_address(Fd connection, os::Endpoint destination, std::string host, Reason reason) {
  os::reset_on_close(connection);
  static_cast<void>(co_await session_.git.recorder.record(event_of(
      {audit::Entry::Tcp, "", destination.text(), std::move(host), destination.port, {reason, ""}})));
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
  static_cast<void>(co_await session_.git.recorder.record(event_of(
      {audit::Entry::Tcp, "", destination.text(), "", destination.port, not_the_probe(line, probe)})));
}

// A client that asked us for an address must name the host that it stands for. Any other address says
// nothing: the name is what is dialled.
Result<policy::Carriage> Front::judge(const policy::HostName& host, const os::Endpoint& destination) const {
  const auto decision = policy::decide(session_.git.grant, policy::Connect{host, destination.port});
  if (!decision.allowed()) return fail(decision.reason, "");
  const policy::IpAddress address = address_of(destination);
  const policy::HostName* asked = session_.addresses.host_at(address);
  const bool fits = !dns::SyntheticAddresses::in_range(address) || (asked != nullptr && *asked == host);
  if (fits) return decision.carriage;
  return fail(Reason::SniMismatch,
              destination.address_text() + " stands for " + (asked != nullptr ? asked->str() : "no host"));
}

net::Task<> Front::serve_tls(Fd connection, os::Endpoint destination) {
  auto peeked = co_await egress::peek_hello(session_.worker, std::move(connection));
  if (!peeked) {
    co_await refuse_handshake(destination, std::move(peeked).error());
    co_return;
  }
  const policy::HostName host = peeked->hello.host;
  auto carriage = judge(host, destination);
  // The name that can be read is not the one that a CDN would go by.
  if (carriage && *carriage == policy::Carriage::Splice && peeked->hello.has_ech) {
    carriage = fail(Reason::EchRefused, "");
  }
  if (!carriage) {
    egress::send_alert(peeked->socket, carriage.error().reason);
    co_await refuse_handshake(destination, {std::move(carriage).error(), host.str()});
  } else if (*carriage == policy::Carriage::Inspect) {
    co_await serve_inspected(*std::move(peeked), destination);
  } else {
    co_await carry(std::move(peeked->socket), destination, host, std::move(peeked->bytes));
  }
}

net::Task<> Front::refuse_handshake(os::Endpoint destination, egress::HandshakeRefusal refusal) {
  static_cast<void>(co_await session_.git.recorder.record(
      event_of({audit::Entry::Tls, "https", destination.text(), std::move(refusal.host), destination.port,
                std::move(refusal.error)})));
}

net::Task<> Front::serve_inspected(egress::PeekedHello peeked, os::Endpoint destination) {
  auto tls = co_await session_.interceptor.accept(
      std::move(peeked), [this, destination](const policy::HostName& host) -> Status {
        auto carriage = judge(host, destination);
        if (!carriage) return fail(std::move(carriage));
        return {};
      });
  if (!tls) {
    co_await refuse_handshake(destination, std::move(tls).error());
    co_return;
  }
  co_await serve_requests(session_.git, {audit::Entry::Tls, destination.text(), tls->host, destination.port},
                          *tls->stream);
}

// Spliced TLS, and what [[tcp]] opens.
net::Task<> Front::carry(Fd connection, os::Endpoint destination, policy::HostName host, std::string early) {
  const auto decision = policy::decide(session_.git.grant, policy::Connect{host, destination.port});
  const bool raw = decision.carriage == policy::Carriage::Raw;
  const std::string rule =
      decision.rule ? policy::source_of(session_.git.grant, *decision.rule).str() : std::string();
  co_await session_.tunnels.carry({.entry = raw ? audit::Entry::Tcp : audit::Entry::Tls,
                                   .scheme = raw ? "tcp" : "https",
                                   .destination = destination.text(),
                                   .host = std::move(host),
                                   .port = destination.port,
                                   .rule = rule},
                                  std::move(connection), std::move(early));
}

// Nothing is ever carried upstream from here; the reason only tells people what to do.
Error Front::refusal_in_clear(const http::RequestHead& head, const os::Endpoint& destination) const {
  const policy::HostName& host = head.host.host;
  auto judged = judge(host, {destination.family, destination.address, policy::kHttpsPort});
  if (judged) return {Reason::PlainHttp, ""};
  if (judged.error().reason == Reason::SniMismatch) judged.error().reason = Reason::HostMismatch;
  return std::move(judged).error();
}

net::Task<> Front::serve_plain_http(Fd connection_fd, os::Endpoint destination) {
  auto stream = net::make_socket_stream(session_.worker, std::move(connection_fd), net::Peer::Client);
  http::Connection connection(*stream, policy::kHttpPort, session_.git.grant.timeouts.request_head);
  auto head = co_await connection.next_request();
  if (head && !*head) co_return;  // it came and went without a word

  Refused refused{audit::Entry::Http, "http", destination.text(), "", destination.port, {}};
  std::string particulars;
  std::string method;
  std::string path;
  if (head) {
    refused.error = refusal_in_clear(**head, destination);
    refused.host = (*head)->host.host.str();
    method = (*head)->method;
    path = (*head)->target;
    if (refused.error.reason == Reason::PlainHttp) particulars = "Use https://" + refused.host + "/ instead.";
  } else {
    refused.error = std::move(head).error();
  }
  const Reason reason = refused.error.reason;
  audit::Event event = event_of(std::move(refused));
  event.method = std::move(method);
  event.path = std::move(path);
  const std::string id = event.request;
  static_cast<void>(co_await session_.git.recorder.record(std::move(event)));
  connection.close_after_response();
  static_cast<void>(co_await http::refuse(connection, {reason, std::move(particulars), id}));
  co_await connection.finish();
}

}  // namespace sallyport::gate
