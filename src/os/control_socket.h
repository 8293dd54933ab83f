// The socket at which a daemon is reached on its host, made so that nobody else can stand in its place, and
// found by clients only where that was so. Everything is done by the descriptor of its folder.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "os/socket_place.h"

namespace sallyport::os {

// Connections that wait to be accepted.
inline constexpr int kControlBacklog = 128;

inline constexpr const char* kSystemControlSocket = "/run/sallyport/control.sock";

// Of a daemon that runs as a user: in $XDG_RUNTIME_DIR, which is `runtime_dir` (null or empty: an error that
// says what to do).
Result<std::string> rootless_control_socket(const char* runtime_dir);

class ControlSocket {
 public:
  // The folder gets mode 0700 and the socket 0600, both ours; with a group 0750 and 0660, and that group. At
  // no moment has either a laxer mode. Missing folders above the last are not made.
  //
  // A socket in its place is replaced when it is ours and nobody answers there. Reason::Overloaded: another
  // daemon serves it, whose process id the error tells.
  static Result<ControlSocket> open(const std::string& path, std::optional<gid_t> operators);

  ControlSocket(ControlSocket&& other) noexcept = default;
  ControlSocket& operator=(ControlSocket&&) = delete;
  // Removes the socket if the one that lies there is still this one.
  ~ControlSocket();

  // Listening, non-blocking.
  int fd() const { return socket_.get(); }

 private:
  ControlSocket(SocketPlace place, Fd lock) : place_(std::move(place)), lock_(std::move(lock)) {}

  Status make_room();
  Status bind(std::optional<gid_t> operators);

  SocketPlace place_;
  Fd lock_;  // the folder again, with flock(2) on it as long as this lives: of two daemons one wins
  Fd socket_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

// The client's side: a connection, blocking. Whoever could have put another socket there, or listens without
// being root or `self`, is not spoken to. Reason::UpstreamUnreachable: there is no daemon, or none that
// listens.
Result<Fd> connect_control(const std::string& path, uid_t self);

}  // namespace sallyport::os
