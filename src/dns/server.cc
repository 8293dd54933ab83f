#include "dns/server.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/random.h"
#include "dns/message.h"

namespace sallyport::dns {
namespace {

namespace asio = boost::asio;
constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);

// Datagrams that are answered before other coroutines get their turn.
constexpr int kMaxDatagramsPerTurn = 64;
constexpr std::size_t kLengthBytes = 2;
constexpr std::size_t kRequestIdBytes = 8;

struct Datagram {
  std::array<char, kMaxQueryBytes + 1> bytes;  // one more: a larger query shows itself
  std::size_t size = 0;
  sockaddr_storage peer{};
  socklen_t peer_bytes = 0;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(in6_pktinfo))> control{};
  std::size_t control_bytes = 0;
};

// Turns what the kernel said of the arrival into what it shall do for the answer: the address that was asked
// becomes the source; the interface is left to routing.
void use_asked_address_as_source(msghdr& message) {
  cmsghdr* control = CMSG_FIRSTHDR(&message);
  if (control == nullptr) return;
  if (control->cmsg_level == IPPROTO_IP && control->cmsg_type == IP_PKTINFO) {
    in_pktinfo info{};
    std::memcpy(&info, CMSG_DATA(control), sizeof info);
    info.ipi_spec_dst = info.ipi_addr;
    info.ipi_ifindex = 0;
    std::memcpy(CMSG_DATA(control), &info, sizeof info);
  } else if (control->cmsg_level == IPPROTO_IPV6 && control->cmsg_type == IPV6_PKTINFO) {
    in6_pktinfo info{};
    std::memcpy(&info, CMSG_DATA(control), sizeof info);
    info.ipi6_ifindex = 0;
    std::memcpy(CMSG_DATA(control), &info, sizeof info);
  }
}

bool receive(int socket, Datagram& datagram) {
  iovec data{datagram.bytes.data(), datagram.bytes.size()};
  msghdr message{};
  message.msg_name = &datagram.peer;
  message.msg_namelen = sizeof datagram.peer;
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = datagram.control.data();
  message.msg_controllen = datagram.control.size();
  const ssize_t received = ::recvmsg(socket, &message, MSG_DONTWAIT);
  if (received < 0) return false;
  use_asked_address_as_source(message);
  datagram.size = static_cast<std::size_t>(received);
  datagram.peer_bytes = message.msg_namelen;
  datagram.control_bytes = message.msg_controllen;
  return true;
}

// A datagram that cannot be sent is lost, as datagrams are: the client asks again.
void send(int socket, Datagram& question, std::string& answer) {
  iovec data{answer.data(), answer.size()};
  msghdr message{};
  message.msg_name = &question.peer;
  message.msg_namelen = question.peer_bytes;
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (question.control_bytes > 0) {
    message.msg_control = question.control.data();
    message.msg_controllen = question.control_bytes;
  }
  static_cast<void>(::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL));
}

// Fills `into` whole; false at the connection's end or failure, wherever it comes.
net::Task<bool> read_exactly(net::Stream& stream, std::span<char> into) {
  while (!into.empty()) {
    const auto got = co_await stream.read_some(into);
    if (!got || *got == 0) co_return false;
    into = into.subspan(*got);
  }
  co_return true;
}

// RFC 7766, 8: length and message in one write, so that they leave in one segment.
std::string framed(std::string_view message) {
  std::string out{static_cast<char>(message.size() >> 8U), static_cast<char>(message.size() & 0xFFU)};
  out += message;
  return out;
}

}  // namespace

Server::Server(net::Worker& worker, const policy::Grant& grant, SyntheticAddresses& addresses,
               audit::Recorder& recorder)
    : worker_(worker), grant_(&grant), addresses_(addresses), recorder_(recorder) {}

std::string Server::answer_one(std::string_view query) {
  if (!rate_.take(net::Clock::now())) return "";
  Reply reply = answer(query, *grant_, addresses_, random_hex(kRequestIdBytes));
  if (reply.refused) recorder_.note(*std::move(reply.refused));
  return std::move(reply.bytes);
}

void Server::answer_waiting(int socket) {
  Datagram datagram;
  for (int i = 0; i < kMaxDatagramsPerTurn && receive(socket, datagram); ++i) {
    std::string reply = answer_one({datagram.bytes.data(), datagram.size});
    if (!reply.empty()) send(socket, datagram, reply);
  }
}

net::Task<> Server::serve_udp(Fd socket) {
  asio::posix::stream_descriptor descriptor(worker_.io(), socket.release());
  net::Deadline until_end(worker_, [&descriptor] { descriptor.cancel(); });
  until_end.set_at_end();
  while (true) {
    const auto [error] = co_await descriptor.async_wait(asio::posix::descriptor_base::wait_read, kAwait);
    if (error) co_return;
    answer_waiting(descriptor.native_handle());
  }
}

net::Task<> Server::serve_tcp(Fd socket) {
  const auto slot = tcp_connections_.take();
  if (slot) {
    auto stream = net::make_socket_stream(worker_, std::move(socket), net::Peer::Client);
    co_await answer_stream(*stream);
    co_return;
  }
  audit::Event event;
  event.kind = audit::Kind::Refused;
  event.request = random_hex(kRequestIdBytes);
  event.entry = audit::Entry::Dns;
  event.reason = Reason::TooMany;
  event.detail = std::to_string(tcp_connections_.taken()) + " connections for DNS are open";
  recorder_.note(std::move(event));
}

net::Task<> Server::answer_stream(net::Stream& stream) {
  for (std::size_t served = 0; served < kMaxTcpQueries; ++served) {
    stream.limit_idle(kTcpIdle);
    if (!co_await stream.wait_readable()) co_return;
    stream.limit_total(kTcpIdle);  // a message that comes byte by byte gains no time
    std::array<char, kLengthBytes> length{};
    if (!co_await read_exactly(stream, length)) co_return;
    const std::size_t bytes = static_cast<std::size_t>(static_cast<unsigned char>(length[0])) << 8U |
                              static_cast<unsigned char>(length[1]);
    std::string message(std::min(bytes, kMaxQueryBytes + 1), '\0');
    if (!co_await read_exactly(stream, message)) co_return;
    std::string reply = answer_one(message);
    if (reply.empty()) co_return;
    if (!co_await stream.write_all(framed(reply))) co_return;
    // Of a message past the limit only the beginning was read: what follows is not the next one's length.
    if (bytes > kMaxQueryBytes) break;
  }
  static_cast<void>(co_await stream.shutdown_write());
}

}  // namespace sallyport::dns
