// The command line's side: starts a warden for one session, and speaks with it.
#pragma once

#include <array>
#include <optional>

#include "control/protocol.h"
#include "os/spawn.h"

namespace sallyport::control {

class Client {
 public:
  // Starts sallyportd, embedded, with an environment of its own. It lives in a session of its own, so that
  // the terminal's signals reach it only through us; it ends, cleaning up, when our socket does.
  static Result<Client> start_warden();

  Status start(const session::Request& request, std::array<int, 3> stdio);
  Status serve(const session::ServeRequest& request);
  Status signal(int number);

  // Readable when there is something to receive.
  int socket() const { return socket_.get(); }
  // The next message, or SessionEnded when the warden is gone; nullopt when there is none yet.
  Result<std::optional<FromWarden>> receive();

  // After the last message: waits for the warden's end.
  void wait();

 private:
  Status send_request(const ToWarden& message, std::string_view request, std::vector<int> more_fds);

  Client(os::Child warden, Fd socket) : warden_(std::move(warden)), socket_(std::move(socket)) {}

  os::Child warden_;
  Fd socket_;
};

}  // namespace sallyport::control
