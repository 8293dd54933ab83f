// The gateway of a whole host: a warden that stays, with its gate and its vault, reached at the control
// socket.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "control/api_server.h"
#include "control/health.h"
#include "control/newcomers.h"
#include "control/sessions.h"
#include "os/control_socket.h"
#include "os/event_loop.h"
#include "os/notify.h"
#include "session/gateway.h"
#include "session/places.h"

namespace sallyport::control {

class Daemon {
 public:
  struct Setup {
    std::string socket;              // its path
    std::optional<gid_t> operators;  // whose members may use it too
    session::Places places;          // the operator's file, and the daemon's own state
    std::string engine;              // the container engine's socket
  };

  // `notifier`: the service manager's.
  Daemon(os::EventLoop& loop, Setup setup, os::Notifier notifier);
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  // Serves until SIGTERM, SIGINT or POST /v1/shutdown, and ends its sessions then; at once when a signal
  // comes after that. An error: why it could not start.
  Status serve();

 private:
  Status begin();
  void on_signal(int number);
  void end_in_order();
  void reload();
  void watch_over();
  std::optional<NotReady> why_not_ready();
  std::string metrics();

  os::EventLoop& loop_;
  Setup setup_;
  os::Notifier notifier_;
  session::Gateway gateway_;
  Sessions sessions_;
  Newcomers newcomers_;
  std::optional<os::ControlSocket> socket_;
  ApiAccess access_;
  ApiServer api_;
  bool ending_ = false;
};

}  // namespace sallyport::control
