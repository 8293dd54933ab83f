// Sockets outside that nothing in a sandbox can reach, unless it leaks. They are opened for a start and
// asked at its end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "sandbox/init_protocol.h"

namespace sallyport::sandbox {

// May a door inside have this port? The same address and port inside may then be the door's own, and what
// pre-flight sends there is read by it: a decoy that proves nothing, and a question that nobody asked.
bool may_be_a_door(std::uint16_t port);

class Decoys {
 public:
  // Addresses of the host that get a decoy, besides loopback; the others are left out.
  static constexpr std::size_t kMaxAddresses = 16;

  // TCP and UDP on 127.0.0.1, ::1 and the host's own addresses (those that can be bound), ports chosen by the
  // kernel but never a door's, and an abstract Unix socket with a random name.
  static Result<Decoys> open();

  const DecoyList& list() const { return list_; }
  // What has arrived somewhere, if anything did: "tcp 192.0.2.1:4711". Does not wait.
  std::optional<std::string> seen() const;

 private:
  struct Socket {
    Fd fd;
    std::string text;
  };
  std::vector<Socket> sockets_;
  DecoyList list_;
};

}  // namespace sallyport::sandbox
