#include "gate/packet_log.h"

#include <netinet/in.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstdio>
#include <string>

namespace sallyport::gate {
namespace {

namespace asio = boost::asio;

struct Kind {
  audit::Entry entry;
  Reason reason;
};

Kind kind_of(std::uint8_t protocol) {
  if (protocol == IPPROTO_UDP) return {audit::Entry::Udp, Reason::UdpRefused};
  // TCP is redirected to a door and refused there; only what no rule foresaw is seen here.
  if (protocol == IPPROTO_TCP) return {audit::Entry::Tcp, Reason::PortNotAllowed};
  return {audit::Entry::Icmp, Reason::IcmpRefused};
}

}  // namespace

audit::Event refusal_of(const os::RefusedPacket& packet) {
  const auto [entry, reason] = kind_of(packet.protocol);
  audit::Event event;
  event.kind = audit::Kind::Refused;
  event.entry = entry;
  event.reason = reason;
  event.port = packet.destination.port;
  event.destination =
      packet.destination.port != 0 ? packet.destination.text() : packet.destination.address_text();
  if (entry == audit::Entry::Icmp) event.detail = "IP protocol " + std::to_string(packet.protocol);
  return event;
}

net::Task<> watch_packet_log(net::Worker& worker, Fd socket, audit::Recorder& recorder) {
  asio::posix::stream_descriptor descriptor(worker.io(), socket.release());
  net::Deadline until_end(worker, [&descriptor] { descriptor.cancel(); });
  until_end.set_at_end();
  while (true) {
    const auto [error] = co_await descriptor.async_wait(asio::posix::descriptor_base::wait_read,
                                                        asio::as_tuple(asio::use_awaitable));
    if (error) co_return;
    const auto packets = os::read_nflog(descriptor.native_handle());
    if (!packets) {
      std::fprintf(stderr, "refused packets are no longer recorded: %s\n", packets.error().detail.c_str());
      co_return;
    }
    for (const os::RefusedPacket& packet : *packets) recorder.note(refusal_of(packet));
  }
}

}  // namespace sallyport::gate
