// The gateway of a whole host: a warden that stays, with its gate and its vault, reached at the control
// socket.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "control/api_server.h"
#include "os/control_socket.h"
#include "os/event_loop.h"
#include "os/notify.h"
#include "session/gateway.h"

namespace sallyport::control {

class Daemon {
 public:
  struct Setup {
    std::string socket;              // its path
    std::optional<gid_t> operators;  // whose members may use it too
  };

  // `notifier`: the service manager's.
  Daemon(os::EventLoop& loop, Setup setup, os::Notifier notifier);
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  // Serves until SIGTERM or SIGINT. An error: why it could not start.
  Status serve();

 private:
  Status begin();
  void watch_over();
  std::optional<std::string> why_not_ready();
  std::string metrics();

  os::EventLoop& loop_;
  Setup setup_;
  os::Notifier notifier_;
  session::Gateway gateway_;
  std::optional<os::ControlSocket> socket_;
  ApiServer api_;
};

}  // namespace sallyport::control
