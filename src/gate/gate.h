// One session's gate: everything that it is made of, and its talk with the warden.
#pragma once

#include <memory>

#include "base/result.h"
#include "net/packet_channel.h"
#include "net/task.h"
#include "net/worker.h"
#include "os/unix_socket.h"
#include "policy/grant.h"
#include "upstream/environment.h"
#include "wire/messages.h"

namespace sallyport::gate {

class Gate {
 public:
  // Waits for the warden's first message, and makes what it asks for. The worker, which is the gate's alone,
  // and the environment outlive it.
  static net::Task<Result<std::unique_ptr<Gate>>> begin(net::Worker& worker,
                                                        upstream::Environment& environment,
                                                        std::unique_ptr<net::PacketChannel> warden);
  static Result<std::unique_ptr<Gate>> make(net::Worker& worker, upstream::Environment& environment,
                                            const wire::GateStart& start, policy::Grant grant,
                                            std::unique_ptr<net::PacketChannel> warden);
  ~Gate();
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  // Says Ready and serves until the warden's end of the socket closes; an error when the warden says
  // something that it may not. Then nothing that was started here may run any further: end the worker, and
  // destroy the gate when that has ended.
  net::Task<Status> serve();

 private:
  struct Parts;
  explicit Gate(std::unique_ptr<Parts> parts);
  Status handle(os::Packet packet);

  std::unique_ptr<Parts> parts_;
};

}  // namespace sallyport::gate
