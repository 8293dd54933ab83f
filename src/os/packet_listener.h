// A SOCK_SEQPACKET socket in the file system, at which one process is expected that was not started by us.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace sallyport::os {

class PacketListener {
 public:
  // At `path`, below a folder that nobody else can reach; anyone who is shown the socket may connect to it.
  static Result<PacketListener> open(const std::string& path);
  PacketListener(PacketListener&&) = default;
  PacketListener& operator=(PacketListener&&) = delete;
  // The socket goes away.
  ~PacketListener();

  // Readable when somebody has come.
  int fd() const { return socket_.get(); }

  struct Accepted {
    Fd connection;  // close-on-exec, non-blocking
    pid_t pid = 0;  // who called connect(2), as we see it
    Fd pidfd;       // of that very process where the kernel tells (SO_PEERPIDFD, Linux 6.5), else by its pid
  };
  // nullopt: nobody is there.
  Result<std::optional<Accepted>> accept() const;

 private:
  PacketListener(std::string path, Fd socket) : path_(std::move(path)), socket_(std::move(socket)) {}

  std::string path_;
  Fd socket_;
};

// The other side, blocking.
Result<Fd> connect_packets(const std::string& path);

}  // namespace sallyport::os
