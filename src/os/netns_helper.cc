#include "os/netns_helper.h"

#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/rate.h"
#include "base/text.h"
#include "os/endpoint.h"
#include "os/firewall.h"
#include "os/links.h"
#include "os/netlink.h"
#include "os/netns.h"
#include "os/nflog.h"
#include "os/unix_socket.h"
#include "os/userns.h"

namespace sallyport::os {

namespace {

constexpr std::uint16_t kDnsPort = 53;

constexpr char kPortStart[] = "/proc/sys/net/ipv4/ip_unprivileged_port_start";
constexpr char kNoIpv6[] = "/proc/sys/net/ipv6/conf/lo/disable_ipv6";

struct OpenDoors {
  std::string head;  // the answer's first line
  std::vector<Listener> listeners;
};

Result<Fd> open_for_reading(const char* path) {
  Fd file(::open(path, O_RDONLY | O_CLOEXEC));
  if (!file) return fail_errno(Reason::Internal, std::string("open ") + path);
  return file;
}

// Servers inside may have port 80 and 443. The first step that needs a capability over the namespace: where
// the host lets anyone make one and then withholds that, it shows here.
Status open_low_ports() {
  const Fd file(::open(kPortStart, O_WRONLY | O_CLOEXEC));
  if (file && ::write(file.get(), "0", 1) == 1) return {};
  if (errno == EPERM || errno == EACCES) {
    return fail(Reason::Internal, explain_userns_failure(errno, read_sysctl));
  }
  return fail_errno(Reason::Internal, std::string("write ") + kPortStart);
}

bool has_ipv6() {
  const auto disabled = read_sysctl(kNoIpv6);
  return disabled && disabled->starts_with('0');
}

std::vector<Endpoint> endpoints(const char* v4, const char* v6, std::uint16_t port) {
  std::vector<Endpoint> result{*endpoint_from(v4, port)};
  if (has_ipv6()) result.push_back(*endpoint_from(v6, port));
  return result;
}

// Bound to the loopback addresses themselves: answers of a wildcard socket would leave with another source
// than the one that was redirected to, and find no record.
Result<std::vector<Listener>> open_door_on(std::uint16_t port) {
  std::vector<Listener> listeners;
  for (const Endpoint& where : endpoints("127.0.0.1", "::1", port)) {
    for (const ListenerKind kind : {ListenerKind::Tcp, ListenerKind::Udp}) {
      auto listener = open_listener(where, kind);
      if (!listener) return fail(std::move(listener));
      listeners.push_back(std::move(*listener));
    }
  }
  return listeners;
}

Result<OpenDoors> open_redirect(const std::optional<Rate>& new_connections) {
  Result<std::vector<Listener>> listeners = fail(Reason::Internal, "");
  std::uint16_t port = kFirstDoorPort;
  for (; port <= kLastDoorPort; ++port) {
    listeners = open_door_on(port);
    if (listeners) break;
  }
  if (!listeners) return fail(Reason::Internal, "no port for the door: " + listeners.error().detail);
  if (auto loaded = load_ruleset(ruleset({.tcp = port, .udp = port}, new_connections)); !loaded) {
    return fail(std::move(loaded));
  }
  return OpenDoors{"doors redirect", std::move(*listeners)};
}

Result<OpenDoors> open_direct(const std::string& why) {
  OpenDoors doors{"doors direct " + why, {}};
  for (const std::uint16_t port : kDirectPorts) {
    for (const Endpoint& where : endpoints("0.0.0.0", "::", port)) {
      auto listener = open_listener(where, ListenerKind::Tcp);
      if (!listener) return fail(std::move(listener));
      doors.listeners.push_back(std::move(*listener));
    }
  }
  for (const Endpoint& where : endpoints("0.0.0.0", "::", kDnsPort)) {
    auto listener = open_listener(where, ListenerKind::Udp);
    if (!listener) return fail(std::move(listener));
    doors.listeners.push_back(std::move(*listener));
  }
  return doors;
}

// What phase A leaves for phase B.
struct Inside {
  Fd route;
};

bool has(const std::vector<std::string_view>& arguments, std::string_view word) {
  return std::ranges::find(arguments, word) != arguments.end();
}

// The user namespace first: it has the rights over the other.
Status join_namespaces(const std::vector<std::string_view>& arguments) {
  if (has(arguments, kJoinUser) && ::setns(kJoinUserFd, CLONE_NEWUSER) != 0) {
    return fail_errno(Reason::Internal, "enter the container's user namespace");
  }
  if (::setns(kJoinNetFd, CLONE_NEWNET) != 0) {
    return fail_errno(Reason::Internal, "enter the container's network namespace");
  }
  return {};
}

Result<Inside> make_namespaces(int control, const std::vector<std::string_view>& arguments) {
  const bool joins = has(arguments, kJoinNet);
  if (auto done = joins ? join_namespaces(arguments) : enter_new_namespaces(); !done) {
    return fail(std::move(done));
  }
  if (auto done = open_low_ports(); !done) return fail(std::move(done));
  auto user = open_for_reading("/proc/self/ns/user");
  if (!user) return fail(std::move(user));
  auto net = open_for_reading("/proc/self/ns/net");
  if (!net) return fail(std::move(net));
  auto query = open_route_socket(0);
  if (!query) return fail(std::move(query));
  auto watch = open_route_socket(RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR);
  if (!watch) return fail(std::move(watch));
  if (auto done = set_nonblocking(watch->get()); !done) return fail(std::move(done));
  auto route = open_route_socket(0);
  if (!route) return fail(std::move(route));
  // An engine has raised it. Down, as in a namespace of our own, nothing at all can be reached.
  if (joins) {
    if (auto done = lower_loopback(route->get()); !done) return fail(std::move(done));
  }

  // Reports of refused packets are for the audit only: without them the sandbox is as closed.
  const auto nflog = open_nflog();
  std::vector<int> fds{user->get(), net->get(), query->get(), watch->get()};
  if (nflog) fds.push_back(nflog->get());
  if (auto sent = send_packet(control, nflog ? "namespaces nflog" : "namespaces", fds); !sent) {
    return fail(std::move(sent));
  }
  return Inside{std::move(*route)};
}

// Routes come last: until then nothing can be reached, and then the doors and rules are there already.
Status add_routes(int route) {
  if (auto done = route_everything_to_loopback(route, AF_INET); !done) return done;
  if (!has_ipv6()) return {};
  return route_everything_to_loopback(route, AF_INET6);
}

// What the caller asks for.
struct Request {
  DoorWish wish = DoorWish::Redirect;
  std::optional<Rate> new_connections;
};

Result<OpenDoors> open_doors(const Inside& inside, const Request& request) {
  if (auto done = raise_loopback(inside.route.get()); !done) return fail(std::move(done));
  if (auto done = add_loopback_address(inside.route.get(), *endpoint_from(kSandboxAddress, 0)); !done) {
    return fail(std::move(done));
  }
  Result<OpenDoors> doors = fail(Reason::Internal, "not wanted");
  if (request.wish == DoorWish::Redirect) doors = open_redirect(request.new_connections);
  if (doors) {
    // The rules are in force: without this they would be open to a flood, and there is no way back.
    if (auto done = limit_connection_records(); !done) return fail(std::move(done));
  } else {
    doors = open_direct(doors.error().detail);
  }
  if (!doors) return doors;
  if (auto done = add_routes(inside.route.get()); !done) return fail(std::move(done));
  return doors;
}

Status send_doors(int control, const OpenDoors& doors) {
  std::string text = doors.head;
  std::vector<int> fds;
  for (const Listener& listener : doors.listeners) {
    text += listener.kind == ListenerKind::Tcp ? "\ntcp " : "\nudp ";
    text += listener.family == AF_INET ? "4 " : "6 ";
    text += std::to_string(listener.port);
    fds.push_back(listener.fd.get());
  }
  return send_packet(control, text, fds);
}

Result<Request> parse_request(std::string_view text) {
  constexpr std::string_view kRedirect = "open redirect ";
  if (text == "open direct") return Request{DoorWish::Direct, std::nullopt};
  if (!text.starts_with(kRedirect)) return fail(Reason::Internal, "an unknown request");
  const auto numbers = split(text.substr(kRedirect.size()), ' ');
  const auto amount = parse_decimal(numbers[0], UINT32_MAX);
  const auto burst = numbers.size() == 2 ? parse_decimal(numbers[1], UINT32_MAX) : std::nullopt;
  if (!amount || !burst) return fail(Reason::Internal, "an unknown rate");
  if (*amount == 0) return Request{DoorWish::Redirect, std::nullopt};
  return Request{DoorWish::Redirect, Rate{.amount = *amount, .burst = *burst}};
}

// The caller's one request; nullopt when it went away or said something else.
Result<std::optional<Request>> receive_request(int control) {
  auto packet = recv_packet(control);
  if (!packet) return fail(std::move(packet));
  if (!*packet || (*packet)->end) return std::optional<Request>();
  auto request = parse_request((*packet)->bytes);
  if (!request) return fail(std::move(request));
  return std::optional(*request);
}

Status serve(int control, const std::vector<std::string_view>& arguments) {
  auto inside = make_namespaces(control, arguments);
  if (!inside) return fail(std::move(inside));
  auto request = receive_request(control);
  if (!request) return fail(std::move(request));
  if (!*request) return {};
  auto doors = open_doors(*inside, **request);
  if (!doors) return fail(std::move(doors));
  return send_doors(control, *doors);
}

}  // namespace

Status serve_namespace_helper(int control, const std::vector<std::string_view>& arguments) {
  auto served = serve(control, arguments);
  // Best effort: a caller that is gone does not listen any more.
  if (!served) static_cast<void>(send_packet(control, "failed " + served.error().detail));
  return served;
}

}  // namespace sallyport::os
