#include "session/host_doors.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/text.h"
#include "os/listener.h"
#include "os/socket_owner.h"

namespace sallyport::session {
namespace {

// A free port of TCP may be taken in UDP.
constexpr int kMaxPortTries = 20;

std::unexpected<Error> wrong(const DoorRequest& request, std::string_view what) {
  return fail(Reason::Internal, fmt::format("'{}': {}", escaped(request.text), what));
}

Result<os::Endpoint> parse_address(const DoorRequest& request, std::string_view text) {
  const auto endpoint = os::endpoint_from_text(text);
  if (!endpoint) return wrong(request, "not an ADDRESS:PORT, such as 127.0.0.1:3128 or [::1]:3128");
  if (!endpoint->is_loopback()) {
    return wrong(request,
                 "only loopback addresses (127.0.0.0/8, ::1) are served for now: from any other, whoever "
                 "reaches this host could use what your policy allows");
  }
  return *endpoint;
}

Result<wire::FixedTarget> parse_target(const DoorRequest& request, std::string_view url) {
  for (const auto& [prefix, scheme, port] :
       {std::tuple{std::string_view("https://"), policy::Scheme::Https, std::uint16_t{443}},
        {std::string_view("http://"), policy::Scheme::Http, std::uint16_t{80}}}) {
    if (!url.starts_with(prefix)) continue;
    auto authority = policy::parse_authority(url.substr(prefix.size()), port);
    if (!authority) return wrong(request, authority.error().detail);
    return wire::FixedTarget{scheme, std::move(*authority)};
  }
  return wrong(request, "a target is https://HOST[:PORT] or http://HOST[:PORT], without a path");
}

struct Door {
  os::Endpoint where;
  std::optional<wire::FixedTarget> target;
};

Result<Door> parse_door(const DoorRequest& request) {
  const std::string_view text = request.text;
  const std::size_t equals = text.find('=');
  const bool is_fixed = request.use == wire::HostDoorUse::Fixed;
  if (is_fixed != (equals != std::string_view::npos)) {
    return wrong(request, is_fixed ? "not ADDRESS:PORT=https://HOST" : "only --door has a target");
  }
  auto where = parse_address(request, text.substr(0, equals));
  if (!where) return fail(std::move(where));
  if (!is_fixed) return Door{*where, std::nullopt};
  auto target = parse_target(request, text.substr(equals + 1));
  if (!target) return fail(std::move(target));
  return Door{*where, std::move(*target)};
}

// Those of one door: one for connections, and for names one for datagrams of the same port.
Result<std::vector<os::Listener>> open_listeners(os::Endpoint where, wire::HostDoorUse use) {
  const bool is_any_port = where.port == 0;
  for (int tries = 1;; ++tries) {
    std::vector<os::Listener> listeners;
    auto tcp = os::open_listener(where, os::ListenerKind::Tcp);
    if (!tcp) return fail(std::move(tcp));
    os::Endpoint taken = where;
    taken.port = tcp->port;
    listeners.push_back(std::move(*tcp));
    if (use != wire::HostDoorUse::Dns) return listeners;
    auto udp = os::open_listener(taken, os::ListenerKind::Udp);
    if (!udp && is_any_port && tries < kMaxPortTries) continue;
    if (!udp) return fail(std::move(udp));
    listeners.push_back(std::move(*udp));
    return listeners;
  }
}

}  // namespace

Result<OpenedDoors> open_host_doors(const std::vector<DoorRequest>& requests, uid_t owner) {
  auto diagnosis = os::open_socket_diagnosis();
  if (!diagnosis) return fail(std::move(diagnosis));
  if (auto status = os::check_socket_diagnosis(diagnosis->get()); !status) return fail(std::move(status));

  OpenedDoors opened;
  opened.doors.message.owner = owner;
  opened.doors.fds.push_back(std::move(*diagnosis));
  for (const DoorRequest& request : requests) {
    auto door = parse_door(request);
    if (!door) return fail(std::move(door));
    auto listeners = open_listeners(door->where, request.use);
    if (!listeners) return wrong(request, listeners.error().detail);
    door->where.port = listeners->front().port;
    opened.addresses.push_back(door->where.text());
    for (os::Listener& listener : *listeners) {
      opened.doors.message.doors.push_back({listener.kind, request.use, door->target});
      opened.doors.fds.push_back(std::move(listener.fd));
    }
  }
  if (opened.doors.message.doors.size() > wire::kMaxHostDoors) {
    return fail(Reason::Internal,
                fmt::format("more than {} doors; one for names counts twice", wire::kMaxHostDoors));
  }
  return opened;
}

}  // namespace sallyport::session
