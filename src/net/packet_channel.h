// A SOCK_SEQPACKET socket between two of our processes, on a worker: whole messages with descriptors.
#pragma once

#include <deque>
#include <memory>

#include "net/worker.h"
#include "os/unix_socket.h"

namespace sallyport::net {

class PacketChannel {
 public:
  static constexpr std::size_t kMaxQueued = 1024;  // messages waiting for a full socket

  static std::unique_ptr<PacketChannel> make(Worker& worker, Fd socket);
  virtual ~PacketChannel() = default;

  // The next message; nullopt when the peer is gone.
  virtual Task<Result<std::optional<os::Packet>>> receive() = 0;
  // Whoever receives is told that the peer is gone.
  virtual void close() noexcept = 0;
  // Queues and sends in order; fails with Overloaded when kMaxQueued messages wait, or when the peer is gone.
  virtual Status send(std::string bytes, std::vector<Fd> fds) = 0;
};

// The next message, which must come within `limit`: then the channel is closed, as if the peer had gone.
Task<Result<std::optional<os::Packet>>> receive_within(Worker& worker, PacketChannel& channel,
                                                       Clock::duration limit);

}  // namespace sallyport::net
