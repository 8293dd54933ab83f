#include "vault/service.h"

#include <sys/socket.h>

#include <utility>

#include "net/packet_channel.h"
#include "net/stream.h"
#include "vault/client.h"
#include "vault/service_lane.h"

namespace sallyport::vault {
namespace {

int socket_option(const Fd& socket, int option) {
  int value = -1;
  socklen_t size = sizeof value;
  return ::getsockopt(socket.get(), SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
}

// Anything else in its place, a file or a network connection, is not served.
bool is_lane(const os::Packet& packet) {
  return packet.bytes == kLaneHello && packet.fds.size() == 1 &&
         socket_option(packet.fds[0], SO_DOMAIN) == AF_UNIX &&
         socket_option(packet.fds[0], SO_TYPE) == SOCK_STREAM &&
         socket_option(packet.fds[0], SO_ACCEPTCONN) == 0;
}

net::Task<> serve_lane(std::shared_ptr<Service::State> state, Fd socket) {
  ++state->lanes;
  {
    ServedLane lane(state, net::make_socket_stream(state->worker, std::move(socket), net::Peer::Vault));
    co_await lane.serve();
  }
  --state->lanes;
}

net::Task<> accept_lanes(std::shared_ptr<Service::State> state, std::unique_ptr<net::PacketChannel> gate) {
  net::Deadline until_end(state->worker, [&gate] { gate->close(); });
  until_end.set_at_end();
  for (;;) {
    auto packet = co_await gate->receive();
    if (!packet) {
      state->alarm({}, packet.error());
      co_return;
    }
    if (!*packet) co_return;  // the gate is gone
    if (!is_lane(**packet)) {
      state->alarm({}, {Reason::VaultRefused, "not a lane of this version"});
      continue;
    }
    // An honest gate counts its lanes; to close this one is answer enough.
    if (state->lanes >= kMaxLanes) continue;
    state->worker.spawn("vault lane", serve_lane(state, std::move((*packet)->fds[0])));
  }
}

}  // namespace

Service::Service(net::Worker& worker, Setup setup)
    : state_(std::make_shared<State>(worker, std::move(setup))) {}

void Service::set_credential(const std::string& name, Secret token) {
  state_->credentials.erase(name);
  state_->credentials.emplace(name, State::Held{std::move(token), {}});
}

void Service::drop_credential(const std::string& name) {
  state_->credentials.erase(name);
}

void Service::use_gate(Fd channel) {
  state_->worker.spawn("vault gate channel",
                       accept_lanes(state_, net::PacketChannel::make(state_->worker, std::move(channel))));
}

}  // namespace sallyport::vault
