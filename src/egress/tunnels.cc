#include "egress/tunnels.h"

#include <sys/socket.h>

#include <chrono>
#include <string>
#include <utility>

#include "os/reset.h"

namespace sallyport::egress {
namespace {

struct Told {
  Reason reason;
  std::string_view detail;
};

Told told(net::TunnelEnding ending) {
  using enum net::TunnelEnding;
  switch (ending) {
    case Clean:
      return {Reason::None, ""};
    case ClientReset:
      // No failure that we know of: TLS clients do so when they close, and the upstream says goodbye to them.
      return {Reason::None, "the client reset the connection"};
    case UpstreamReset:
      return {Reason::UpstreamClosed, "the upstream reset the connection"};
    case Idle:
      return {Reason::None, "nothing moved for too long"};
    case Life:
      return {Reason::None, "open for too long"};
    case CapUp:
    case CapDown:
      return {Reason::TooLarge, "more bytes than the connection may carry"};
    case Spent:
      return {Reason::TooMany, "the session's budget for bytes is spent"};
    case Closed:
      return {Reason::Revoked, ""};
    case NoPipe:
      return {Reason::Overloaded, "no more pipes"};
  }
  return {Reason::Internal, ""};
}

audit::Event event_of(TunnelRequest request) {
  audit::Event event;
  event.request = audit::new_request_id();
  event.entry = request.entry;
  event.scheme = request.carriage == policy::Carriage::Raw ? "tcp" : "https";
  event.destination = std::move(request.destination);
  event.host = request.host.str();
  event.port = request.port;
  event.rule = std::move(request.rule);
  return event;
}

}  // namespace

net::Task<> Tunnels::carry(TunnelRequest request, Fd client, std::string early) {
  const policy::HostName host = request.host;
  forward::Live::Entry live(live_,
                            {.operation = policy::Connect{host, request.port}, .carriage = request.carriage});
  audit::Event event = event_of(std::move(request));
  const auto tunnel = usage_.tunnels_to.take(host);
  auto making = usage_.connects.take();
  const auto now = net::Clock::now();
  if (!tunnel) {
    co_await refuse(
        std::move(event), std::move(client),
        {Reason::TooMany, std::to_string(usage_.tunnels_to.taken(host)) + " tunnels to this host are open"});
  } else if (!making) {
    co_await refuse(std::move(event), std::move(client),
                    {Reason::Overloaded,
                     std::to_string(usage_.connects.taken()) + " upstream connections are being made"});
  } else if (!usage_.upload.has_any(now) || !usage_.download.has_any(now)) {
    co_await refuse(std::move(event), std::move(client),
                    {Reason::TooMany, std::string(told(net::TunnelEnding::Spent).detail)});
  } else {
    co_await carry_recorded(std::move(event), host, live, std::move(client), std::move(early),
                            *std::move(making));
  }
}

net::Task<> Tunnels::refuse(audit::Event event, Fd client, Error error) {
  os::reset_on_close(client);
  co_await recorder_.refuse(std::move(event), std::move(error));
}

// `making` is free again when this returns.
net::Task<Result<net::Dialled>> Tunnels::dial(policy::HostName host, std::uint16_t port,
                                              Slots::Slot /*making*/) {
  co_return co_await net::dial(worker_, resolver_, host, port, grant_.upstream(host),
                               grant_.timeouts.connect);
}

net::TunnelLimits Tunnels::limits() const {
  return {.idle = grant_.limits.tunnel_idle,
          .life = grant_.limits.tunnel_life,
          .max_bytes_up = grant_.limits.tunnel_upload,
          .max_bytes_down = grant_.limits.tunnel_download,
          .budget_up = &usage_.upload,
          .budget_down = &usage_.download};
}

// Nothing of the client's goes anywhere before the upstream is there; its own end it sees at once.
net::Task<> Tunnels::carry_recorded(audit::Event event, policy::HostName host, forward::Live::Entry& live,
                                    Fd client, std::string early, Slots::Slot making) {
  const auto started = net::Clock::now();
  live.end_by([fd = client.get()] { ::shutdown(fd, SHUT_RDWR); });
  event.kind = audit::Kind::Begin;
  if (!co_await recorder_.record(event)) {
    os::reset_on_close(client);
    co_return;
  }
  event.kind = audit::Kind::End;
  Result<net::Dialled> dialled = fail(Reason::Revoked, "");
  if (!live.revoked()) dialled = co_await dial(host, event.port, std::move(making));
  if (live.revoked()) dialled = fail(Reason::Revoked, "");
  if (!dialled) {
    os::reset_on_close(client);
    event.reason = dialled.error().reason;
    event.detail = std::move(dialled).error().detail;
  } else {
    net::Tunnel tunnel(worker_, pipes_, std::move(client), std::move(dialled->socket), limits());
    co_await move(tunnel, live, std::move(early), event);
  }
  event.duration = std::chrono::duration_cast<std::chrono::microseconds>(net::Clock::now() - started);
  recorder_.note(std::move(event));
}

net::Task<> Tunnels::move(net::Tunnel& tunnel, forward::Live::Entry& live, std::string early,
                          audit::Event& event) {
  live.end_by([&tunnel] { tunnel.close(); });
  const net::TunnelEnd end = co_await tunnel.run({.to_upstream = std::move(early), .to_client = ""});
  live.end_by({});
  event.reason = told(end.why).reason;
  event.detail = told(end.why).detail;
  event.bytes_in = end.bytes_up;
  event.bytes_out = end.bytes_down;
}

}  // namespace sallyport::egress
