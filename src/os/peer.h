// Who is at the other end of a connected Unix socket, as the kernel knows it.
#pragma once

#include <sys/types.h>

#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace sallyport::os {

// user_namespaces(7): what an id without a mapping in our namespace is shown as.
inline constexpr uid_t kOverflowUid = 65534;
// More supplementary groups than that, and the peer is refused. The kernel allows 65,536.
inline constexpr std::size_t kMaxPeerGroups = 65'536;

struct Peer {
  pid_t pid = 0;  // of its connect(2): may be gone, and may be another's by now. Never to go by
  uid_t uid = kOverflowUid;
  gid_t gid = kOverflowUid;
  std::vector<gid_t> groups;  // supplementary
};

// Fails when the kernel does not say, and for a process that is not in our own user and PID namespaces, or
// not alive any more, where the kernel can tell (SO_PEERPIDFD, Linux 6.5).
Result<Peer> accepted_peer(int connection);

// The process at the other end, as a pidfd: readable when it has ended. ClientClosed: it has already, as
// older kernels say. For waiting alone: before Linux 6.5 it is found by its id.
Result<Fd> open_peer_process(int connection);

}  // namespace sallyport::os
