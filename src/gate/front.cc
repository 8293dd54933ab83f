#include "gate/front.h"

#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "gate/requests.h"
#include "http/connection.h"
#include "http/reply.h"
#include "policy/decide.h"

namespace sallyport::gate {
namespace {

constexpr std::uint16_t kDnsPort = 53;
constexpr std::uint16_t kHttpPort = 80;

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

// Closing then resets the connection: a client that is refused shall not wait, nor take it for an orderly
// end.
void reset_on_close(const Fd& connection) {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  static_cast<void>(::setsockopt(connection.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once));
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
  } else if (destination->port == policy::kHttpsPort) {
    co_await serve_tls(std::move(connection), *destination);
  } else if (destination->port == kHttpPort) {
    co_await serve_plain_http(std::move(connection), *destination);
  } else if (destination->port == kDnsPort) {
    co_await session_.dns.serve_tcp(
        net::make_socket_stream(session_.worker, std::move(connection), net::Peer::Client));
  } else {
    co_await refuse_port(std::move(connection), *destination);
  }
}

net::Task<> Front::refuse(Fd connection, std::string destination, Error error) {
  reset_on_close(connection);
  // Refused it is whether or not the line could be written.
  static_cast<void>(co_await session_.git.recorder.record(
      event_of({audit::Entry::Tcp, "", std::move(destination), "", 0, std::move(error)})));
}

net::Task<> Front::refuse_port(Fd connection, os::Endpoint destination) {
  reset_on_close(connection);
  const policy::HostName* host = session_.addresses.host_at(address_of(destination));
  const Reason reason = host != nullptr ? Reason::PortNotAllowed : Reason::IpLiteral;
  static_cast<void>(co_await session_.git.recorder.record(event_of({audit::Entry::Tcp,
                                                                    "",
                                                                    destination.text(),
                                                                    host != nullptr ? host->str() : "",
                                                                    destination.port,
                                                                    {reason, ""}})));
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
Status Front::judge(const policy::HostName& host, const os::Endpoint& destination) const {
  const auto decision = policy::decide(session_.git.grant, policy::Connect{host, destination.port});
  if (!decision.allowed()) return fail(decision.reason, "");
  const policy::IpAddress address = address_of(destination);
  if (!dns::SyntheticAddresses::in_range(address)) return {};
  const policy::HostName* asked = session_.addresses.host_at(address);
  if (asked != nullptr && *asked == host) return {};
  return fail(Reason::SniMismatch,
              destination.address_text() + " stands for " + (asked != nullptr ? asked->str() : "no host"));
}

net::Task<> Front::serve_tls(Fd connection, os::Endpoint destination) {
  auto tls = co_await session_.interceptor.accept(
      std::move(connection),
      [this, destination](const policy::HostName& host) { return judge(host, destination); });
  if (!tls) {
    static_cast<void>(co_await session_.git.recorder.record(
        event_of({audit::Entry::Tls, "https", destination.text(), std::move(tls.error().host),
                  destination.port, std::move(tls.error().error)})));
    co_return;
  }
  co_await serve_requests(session_.git, {audit::Entry::Tls, destination.text(), tls->host, destination.port},
                          *tls->stream);
}

// Nothing is ever carried upstream from here; the reason only tells people what to do.
Error Front::refusal_in_clear(const http::RequestHead& head, const os::Endpoint& destination) const {
  const policy::HostName& host = head.host.host;
  Status judged = judge(host, {destination.family, destination.address, policy::kHttpsPort});
  if (judged) return {Reason::PlainHttp, ""};
  if (judged.error().reason == Reason::SniMismatch) judged.error().reason = Reason::HostMismatch;
  return std::move(judged).error();
}

net::Task<> Front::serve_plain_http(Fd connection_fd, os::Endpoint destination) {
  auto stream = net::make_socket_stream(session_.worker, std::move(connection_fd), net::Peer::Client);
  http::Connection connection(*stream, kHttpPort, session_.git.grant.timeouts.request_head);
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
