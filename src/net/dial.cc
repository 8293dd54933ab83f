#include "net/dial.h"

#include <sys/socket.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <utility>

#include "os/endpoint.h"

namespace sallyport::net {
namespace {

namespace asio = boost::asio;

os::Endpoint endpoint(const policy::IpAddress& address, std::uint16_t port) {
  const bool v4 = address.family == policy::Family::V4;
  return {
      .family = static_cast<sa_family_t>(v4 ? AF_INET : AF_INET6), .address = address.bytes, .port = port};
}

// What was dialled is what was judged: says so even if the kernel's translation tables say otherwise.
Status check_peer(int socket, const os::Endpoint& wanted) {
  os::SocketAddress peer;
  peer.length = sizeof peer.storage;
  if (::getpeername(socket, peer.get(), &peer.length) != 0) {
    return fail_errno(Reason::UpstreamUnreachable, "getpeername");
  }
  if (os::endpoint_from(peer.storage) == wanted) return {};
  return fail(Reason::UpstreamUnreachable, "connected to another address than was dialled");
}

// Waits until a connection under way is made or has failed.
Task<Result<Fd>> finish_connect(Worker& worker, Fd socket, Clock::duration limit) {
  asio::posix::stream_descriptor descriptor(worker.io(), socket.get());
  (void)socket.release();
  Deadline deadline(worker, [&descriptor] {
    boost::system::error_code ignored;
    descriptor.cancel(ignored);
  });
  deadline.set(limit);
  boost::system::error_code error;
  co_await descriptor.async_wait(asio::posix::stream_descriptor::wait_write,
                                 asio::redirect_error(asio::use_awaitable, error));
  if (deadline.expired()) co_return fail(Reason::UpstreamTimeout, "connecting took too long");
  int problem = 0;
  socklen_t size = sizeof problem;
  if (error || ::getsockopt(descriptor.native_handle(), SOL_SOCKET, SO_ERROR, &problem, &size) != 0) {
    co_return fail(Reason::UpstreamUnreachable, "connect: " + error.message());
  }
  if (problem != 0) co_return fail(Reason::UpstreamUnreachable, "connect: " + errno_text(problem));
  co_return Fd(descriptor.release());
}

Task<Result<Dialled>> connect_to(Worker& worker, policy::IpAddress address, std::uint16_t port,
                                 Clock::duration limit) {
  const os::Endpoint there = endpoint(address, port);
  Fd socket(::socket(there.family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) co_return fail_errno(Reason::UpstreamUnreachable, "socket");
  const os::SocketAddress to = os::socket_address(there);
  if (::connect(socket.get(), to.get(), to.length) != 0) {
    if (errno != EINPROGRESS) co_return fail_errno(Reason::UpstreamUnreachable, "connect");
    auto connected = co_await finish_connect(worker, std::move(socket), limit);
    if (!connected) co_return fail(std::move(connected));
    socket = std::move(*connected);
  }
  if (auto status = check_peer(socket.get(), there); !status) co_return fail(std::move(status));
  co_return Dialled{std::move(socket), address, port};
}

}  // namespace

Status check_addresses(const policy::HostName& name, const std::vector<policy::IpAddress>& addresses,
                       const policy::UpstreamHost& host) {
  for (const policy::IpAddress& address : addresses) {
    const policy::AddressClass found = policy::classify(address);
    const bool fits = found == policy::AddressClass::Global ||
                      (found == policy::AddressClass::Private && host.allow_private);
    if (!fits) return fail(Reason::AddressDenied, name.str() + " resolves to " + address.str());
  }
  return {};
}

Task<Result<Dialled>> dial(Worker& worker, Resolver& resolver, policy::HostName name, std::uint16_t port,
                           const policy::UpstreamHost& host, Clock::duration connect_limit) {
  std::vector<policy::IpAddress> addresses;
  if (host.address) {
    addresses.push_back(host.address->address);
    port = host.address->port.value_or(port);
  } else {
    auto resolved = co_await resolver.resolve(name);
    if (!resolved) co_return fail(std::move(resolved));
    if (auto status = check_addresses(name, *resolved, host); !status) co_return fail(std::move(status));
    addresses = std::move(*resolved);
  }

  const auto end = Clock::now() + connect_limit;
  Error last{Reason::UpstreamUnresolved, name.str() + ": no address"};
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    // Each one left gets its even share of the time, so that a silent first does not take it all.
    const auto share = (end - Clock::now()) / static_cast<Clock::rep>(addresses.size() - i);
    auto dialled = co_await connect_to(worker, addresses[i], port, share);
    if (dialled) co_return std::move(*dialled);
    last = std::move(dialled).error();
    last.detail = name.str() + " at " + endpoint(addresses[i], port).text() + ": " + last.detail;
  }
  co_return std::unexpected(std::move(last));
}

}  // namespace sallyport::net
