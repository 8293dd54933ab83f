#include "gate/doors.h"

#include <sys/socket.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "net/stream.h"
#include "os/socket_owner.h"
#include "os/unix_socket.h"

namespace sallyport::gate {
namespace {

namespace asio = boost::asio;
constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);

// Connections that are accepted before other coroutines get their turn.
constexpr int kMaxAcceptsPerTurn = 32;
// When descriptors or memory run out: until some are free again.
constexpr std::chrono::milliseconds kOutOfResourcesPause{100};

bool is_out_of_resources(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}
// The one waiting connection is bad, or the call was disturbed: the next may be fine (accept(2), "Error
// handling").
bool is_passing(int error) {
  return error == EINTR || error == ECONNABORTED || error == EPROTO || error == EPERM || error == ENETDOWN ||
         error == EHOSTDOWN || error == EHOSTUNREACH || error == ENETUNREACH || error == ENOPROTOOPT;
}

}  // namespace

Doors::Doors(net::Worker& worker, Front& front, dns::Server& dns, audit::Recorder& recorder,
             std::size_t max_connections)
    : worker_(worker),
      front_(front),
      dns_(dns),
      recorder_(recorder),
      max_connections_(max_connections),
      room_(worker.io(), asio::steady_timer::time_point::max()) {}

Status Doors::open(const wire::GateDoors& message, std::vector<Fd> fds) {
  if (fds.size() != message.doors.size()) return fail(Reason::Internal, "doors and descriptors do not match");
  for (std::size_t i = 0; i < message.doors.size(); ++i) {
    switch (message.doors[i].kind) {
      case wire::DoorKind::Tcp:
        worker_.spawn("a TCP door",
                      accept_loop(std::move(fds[i]), [this, mode = message.mode](Fd connection) {
                        return serve_sandbox(std::move(connection), mode);
                      }));
        break;
      case wire::DoorKind::Udp:
        worker_.spawn("a UDP door", dns_.serve_udp(std::move(fds[i])));
        break;
    }
  }
  return {};
}

Status Doors::open(const wire::GateHostDoors& message, std::vector<Fd> fds) {
  if (fds.size() != message.doors.size() + 1)
    return fail(Reason::Internal, "doors and descriptors do not match");
  diagnosis_ = std::move(fds.front());
  owner_ = message.owner;
  for (std::size_t i = 0; i < message.doors.size(); ++i) {
    const wire::HostDoor& door = message.doors[i];
    Fd& listener = fds[i + 1];
    switch (door.kind) {
      case wire::DoorKind::Tcp:
        worker_.spawn("a TCP door", accept_loop(std::move(listener), [this, door](Fd connection) {
                        return serve_host(std::move(connection), door);
                      }));
        break;
      case wire::DoorKind::Udp:
        worker_.spawn("a UDP door", dns_.serve_udp(std::move(listener)));
        break;
    }
  }
  return {};
}

net::Task<> Doors::accept_loop(Fd listener, Serve serve) {
  asio::posix::stream_descriptor door(worker_.io(), listener.release());
  net::Deadline until_end(worker_, [&door] { door.cancel(); });
  until_end.set_at_end();
  while (true) {
    if (connections_ >= max_connections_) co_await wait_for_room();
    if (until_end.expired()) co_return;
    const auto [error] = co_await door.async_wait(asio::posix::descriptor_base::wait_read, kAwait);
    if (error) co_return;
    const int problem = accept_waiting(door.native_handle(), serve);
    if (problem == 0) continue;
    if (is_out_of_resources(problem)) {
      co_await worker_.sleep(kOutOfResourcesPause);
      continue;
    }
    std::fprintf(stderr, "a door is closed: accept: %s\n", errno_text(problem).c_str());
    co_return;
  }
}

int Doors::accept_waiting(int listener, const Serve& serve) {
  for (int i = 0; i < kMaxAcceptsPerTurn && connections_ < max_connections_; ++i) {
    Fd connection(::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (connection) {
      ++connections_;
      worker_.spawn("a connection", serve_one(std::move(connection), serve));
      continue;
    }
    if (os::would_block(errno)) return 0;
    if (!is_passing(errno)) return errno;
  }
  return 0;
}

net::Task<> Doors::serve_one(Fd connection, Serve serve) {
  // What the warden said before this client connected has arrived with it at the latest, and waits in the
  // loop's queue: behind it, so that no connection is served by what held before.
  co_await asio::post(worker_.io(), asio::use_awaitable);
  co_await serve(std::move(connection));
  --connections_;
  room_.cancel();
}

net::Task<> Doors::serve_sandbox(Fd connection, os::DoorMode mode) {
  auto destination = os::original_destination(connection.get(), mode);
  if (destination) {
    co_await front_.serve(std::move(connection), *destination);
  } else {
    co_await front_.refuse(std::move(connection), "", std::move(destination).error());
  }
}

Status Doors::check_owner(const Fd& connection) const {
  const auto owner = os::peer_owner(diagnosis_.get(), connection.get());
  if (!owner) return fail(Result(owner));
  if (*owner == owner_) return {};
  return fail(Reason::OtherUser, "uid " + std::to_string(*owner));
}

net::Task<> Doors::serve_host(Fd connection, wire::HostDoor door) {
  const auto addressed = os::local_endpoint(connection.get());
  const std::string destination = addressed ? addressed->text() : "";
  if (Status ours = check_owner(connection); !ours) {
    co_await front_.refuse(std::move(connection), destination, std::move(ours).error());
    co_return;
  }
  co_await serve_use(std::move(connection), std::move(door), destination);
}

net::Task<> Doors::serve_use(Fd connection, wire::HostDoor door, std::string destination) {
  Target target{.destination = std::move(destination), .host = std::nullopt};
  switch (door.use) {
    case wire::HostDoorUse::Proxy:
      return front_.serve_proxy(std::move(connection), std::move(target));
    case wire::HostDoorUse::Tls:
      target.port = policy::kHttpsPort;
      return serve_tls(std::move(connection), std::move(target));
    case wire::HostDoorUse::Http:
      target.port = policy::kHttpPort;
      return serve_plain_http(std::move(connection), std::move(target));
    case wire::HostDoorUse::Dns:
      return dns_.serve_tcp(std::move(connection));
    case wire::HostDoorUse::Fixed:
      target.port = door.target->authority.port;
      target.host = std::move(door.target->authority.host);
      return door.target->scheme == policy::Scheme::Https
                 ? serve_tls(std::move(connection), std::move(target))
                 : serve_plain_http(std::move(connection), std::move(target));
  }
  std::unreachable();
}

net::Task<> Doors::serve_tls(Fd connection, Target target) {
  target.entry = audit::Entry::Tls;
  return front_.serve_tls(std::move(connection), "", std::move(target));
}

net::Task<> Doors::serve_plain_http(Fd connection, Target target) {
  target.entry = audit::Entry::Http;
  return front_.serve_plain_http(std::move(connection), "", std::move(target));
}

net::Task<> Doors::wait_for_room() {
  if (full_lines_.take(net::Clock::now())) {
    audit::Event event;
    event.kind = audit::Kind::Refused;
    event.entry = audit::Entry::Tcp;
    event.reason = Reason::TooMany;
    event.detail = std::to_string(connections_) + " connections are open; others wait";
    recorder_.note(std::move(event));
  }
  while (connections_ >= max_connections_) co_await room_.async_wait(kAwait);
}

}  // namespace sallyport::gate
