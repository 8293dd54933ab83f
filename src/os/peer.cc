#include "os/peer.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <optional>
#include <string>

#include "base/text.h"

namespace sallyport::os {
namespace {

#ifndef SO_PEERPIDFD
constexpr int SO_PEERPIDFD = 77;  // asm-generic/socket.h of Linux 6.5
#endif

std::unexpected<Error> refuse(std::string sentence) {
  return fail(Reason::OtherUser, std::move(sentence));
}

Result<std::vector<gid_t>> peer_groups(int connection) {
  std::vector<gid_t> groups(32);
  for (;;) {
    auto size = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
    if (::getsockopt(connection, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &size) == 0) {
      groups.resize(size / sizeof(gid_t));
      return groups;
    }
    const std::size_t needed = size / sizeof(gid_t);
    if (errno != ERANGE || needed <= groups.size()) return fail_errno(Reason::Internal, "SO_PEERGROUPS");
    if (needed > kMaxPeerGroups) return refuse("the peer is in too many groups");
    groups.resize(needed);
  }
}

// The process's id in our PID namespace; nullopt when it has none there, or is gone (proc(5), fdinfo of a
// pidfd).
std::optional<std::uint64_t> visible_pid(int pidfd) {
  std::ifstream file(fmt::format("/proc/self/fdinfo/{}", pidfd));
  constexpr std::string_view kField = "Pid:";
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(kField)) continue;
    const auto pid = parse_decimal(trimmed(std::string_view(line).substr(kField.size())));
    return pid && *pid > 0 ? pid : std::nullopt;
  }
  return std::nullopt;
}

bool has_ended(int pidfd) {
  pollfd entry{pidfd, POLLIN, 0};
  return ::poll(&entry, 1, 0) != 0;
}

// The path names a process by its number, which is the pidfd's as long as that one has not ended: so who
// looks there asks has_ended() afterwards.
Status check_namespace(std::uint64_t pid, const char* kind, const Peer& peer) {
  struct stat ours{};
  struct stat theirs{};
  if (::stat(fmt::format("/proc/self/ns/{}", kind).c_str(), &ours) != 0) {
    return fail_errno(Reason::Internal, fmt::format("look at our own {} namespace", kind));
  }
  if (::stat(fmt::format("/proc/{}/ns/{}", pid, kind).c_str(), &theirs) != 0) {
    // Of root's processes a daemon without its rights sees nothing, nor needs it protection from root.
    if (peer.uid == 0 && errno == EACCES) return {};
    return refuse(
        fmt::format("the {} namespace of process {} cannot be looked at: {}", kind, pid, errno_text(errno)));
  }
  if (ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino) return {};
  return refuse(fmt::format("process {} is in another {} namespace", pid, kind));
}

Status check_process(int connection, const Peer& peer) {
  int number = -1;
  socklen_t size = sizeof number;
  if (::getsockopt(connection, SOL_SOCKET, SO_PEERPIDFD, &number, &size) != 0) {
    if (errno == ENOPROTOOPT) return {};  // an older kernel: the uid alone has to do
    return refuse("the process that connected is gone");
  }
  const Fd pidfd(number);
  const auto pid = visible_pid(pidfd.get());
  if (!pid) return refuse("the process that connected is gone, or in another pid namespace");
  for (const char* kind : {"user", "pid"}) {
    if (auto ok = check_namespace(*pid, kind, peer); !ok && !has_ended(pidfd.get())) return ok;
  }
  if (has_ended(pidfd.get())) return refuse("the process that connected is gone");
  return {};
}

}  // namespace

Result<Peer> accepted_peer(int connection) {
  ucred ids{};
  socklen_t size = sizeof ids;
  if (::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &ids, &size) != 0) {
    return fail_errno(Reason::Internal, "SO_PEERCRED");
  }
  Peer peer{.pid = ids.pid, .uid = ids.uid, .gid = ids.gid, .groups = {}};
  if (peer.uid == kOverflowUid) return refuse("the peer's uid does not map here");
  auto groups = peer_groups(connection);
  if (!groups) return fail(std::move(groups));
  peer.groups = std::move(*groups);
  if (auto ok = check_process(connection, peer); !ok) return fail(std::move(ok));
  return peer;
}

Result<Fd> open_peer_process(int connection) {
  int number = -1;
  socklen_t size = sizeof number;
  if (::getsockopt(connection, SOL_SOCKET, SO_PEERPIDFD, &number, &size) == 0) return Fd(number);
  if (errno != ENOPROTOOPT) return fail(Reason::ClientClosed, "the process has ended");
  ucred ids{};
  size = sizeof ids;
  if (::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &ids, &size) != 0) {
    return fail_errno(Reason::Internal, "SO_PEERCRED");
  }
  Fd process(static_cast<int>(::syscall(SYS_pidfd_open, ids.pid, 0U)));
  if (!process && errno == ESRCH) return fail(Reason::ClientClosed, "the process has ended");
  if (!process) return fail_errno(Reason::Internal, "pidfd_open");
  return process;
}

}  // namespace sallyport::os
