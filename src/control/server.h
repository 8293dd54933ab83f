// The warden's side of one command line: takes its request, runs the session, and reports. A warden that was
// started by `sallyport run` serves exactly one, and ends with it.
#pragma once

#include <optional>

#include "base/fd.h"
#include "base/result.h"
#include "control/protocol.h"
#include "os/event_loop.h"
#include "os/unix_socket.h"
#include "session/serve_session.h"
#include "session/session.h"

namespace sallyport::control {

class Server {
 public:
  // `socket`: SOCK_SEQPACKET, connected to the command line.
  Server(os::EventLoop& loop, Fd socket);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Returns when the session is over and the command line has been told.
  Status serve();

 private:
  void on_readable();
  Status on_message(os::Packet packet);
  Status start_session(os::Packet packet);
  Status start_serving(const os::Packet& packet);
  void on_signal(int number);
  void on_end(const FromWarden& last_word);
  void tell(const FromWarden& message);

  os::EventLoop& loop_;
  Fd socket_;
  session::Gateway gateway_{loop_};
  // One of the two, once there is a request.
  std::optional<session::Session> session_;
  std::optional<session::ServeSession> serving_;
};

}  // namespace sallyport::control
