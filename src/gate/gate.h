// One gate process: everything that it is made of, and its talk with the warden.
#pragma once

#include <memory>

#include "base/fd.h"
#include "base/result.h"
#include "net/task.h"
#include "net/worker.h"
#include "os/unix_socket.h"
#include "policy/grant.h"
#include "wire/messages.h"

namespace sallyport::gate {

class Gate {
 public:
  // Reads whatever it will need from files (the system's roots, resolv.conf): call it before confinement.
  // The worker outlives the gate.
  static Result<std::unique_ptr<Gate>> make(net::Worker& worker, const wire::GateStart& start,
                                            policy::Grant grant, Fd control);
  ~Gate();
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  // Says Ready and serves until the warden's end of the control socket closes; an error when the warden says
  // something that it may not. Then nothing that was started here may run any further: stop the worker.
  net::Task<Status> serve();

 private:
  struct Parts;
  explicit Gate(std::unique_ptr<Parts> parts);
  Status handle(os::Packet packet);

  std::unique_ptr<Parts> parts_;
};

// What the warden says first, before anything else is there: waits for it.
struct Start {
  wire::GateStart message;
  policy::Grant grant;
};
Result<Start> receive_start(const Fd& control);

}  // namespace sallyport::gate
