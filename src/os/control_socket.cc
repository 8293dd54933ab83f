#include "os/control_socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>

#include <cerrno>
#include <chrono>

namespace sallyport::os {
namespace {

constexpr mode_t kModeBits = 07777;
// How long a client waits for room in a busy daemon's backlog.
constexpr std::chrono::seconds kConnectLimit{5};

std::unexpected<Error> refuse(std::string sentence) {
  return fail(Reason::Internal, std::move(sentence));
}

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  return address;
}

// Zero, or the errno.
int connect_to(int socket, const SocketPlace& place) {
  const sockaddr_un address = address_of(place.by_descriptor());
  while (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

Result<ucred> peer_of(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return fail_errno(Reason::Internal, "SO_PEERCRED");
  }
  return peer;
}

// What lies at the place itself; false when nothing does.
Result<bool> look(const SocketPlace& place, struct stat& facts) {
  if (::fstatat(place.folder.get(), place.name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0) return true;
  if (errno == ENOENT) return false;
  return fail_errno(Reason::Internal, "stat " + place.path);
}

Status check_is_socket(const SocketPlace& place, const struct stat& facts) {
  if (S_ISSOCK(facts.st_mode)) return {};
  return refuse(fmt::format("{} is {}, not a socket: move it away", place.path,
                            S_ISLNK(facts.st_mode) ? "a symbolic link" : "some other file"));
}

// Whoever serves the socket; nullopt when nobody does.
Result<std::optional<pid_t>> who_answers(const SocketPlace& place) {
  const Fd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!probe) return fail_errno(Reason::Internal, "socket");
  const int error = connect_to(probe.get(), place);
  if (error == ECONNREFUSED || error == ENOENT) return std::nullopt;
  if (error == EAGAIN) return 0;  // its backlog is full: it lives, and does not say who it is
  if (error != 0) return refuse(fmt::format("connect to {}: {}", place.path, errno_text(error)));
  auto peer = peer_of(probe.get());
  if (!peer) return fail(std::move(peer));
  return peer->pid;
}

std::unexpected<Error> already_running(const SocketPlace& place, std::optional<pid_t> pid) {
  const std::string who = pid && *pid > 0 ? fmt::format("process {}", *pid) : "another process";
  return fail(Reason::Overloaded,
              fmt::format("sallyportd is already running: {} serves {}", who, place.path));
}

// Group first: a mode that grants it something must not reach the former one.
Status settle_folder(int folder, const SocketPlace& place, std::optional<gid_t> operators) {
  struct stat facts{};
  if (::fstat(folder, &facts) != 0) return fail_errno(Reason::Internal, "stat the folder of " + place.path);
  const mode_t mode = operators ? 0750 : 0700;
  if (operators && facts.st_gid != *operators) {
    if (::fchmod(folder, 0700) != 0 || ::fchown(folder, static_cast<uid_t>(-1), *operators) != 0) {
      return fail_errno(Reason::Internal,
                        fmt::format("give the folder of {} to group {}", place.path, *operators));
    }
    facts.st_mode = 0700;
  }
  if ((facts.st_mode & kModeBits) != mode && ::fchmod(folder, mode) != 0) {
    return fail_errno(Reason::Internal, "chmod the folder of " + place.path);
  }
  return {};
}

}  // namespace

Result<std::string> rootless_control_socket(const char* runtime_dir) {
  if (runtime_dir == nullptr || *runtime_dir == '\0') {
    return refuse(
        "XDG_RUNTIME_DIR is not set, so there is no place for the control socket: log in with a session "
        "of your own (`loginctl`, or `machinectl shell USER@`), or export XDG_RUNTIME_DIR=/run/user/$(id "
        "-u)");
  }
  return std::string(runtime_dir) + "/sallyport/control.sock";
}

Result<ControlSocket> ControlSocket::open(const std::string& path, std::optional<gid_t> operators) {
  auto place = open_socket_place(path, ::geteuid(), MissingFolder::Make);
  if (!place) return fail(std::move(place));
  if (place->folder_owner != ::geteuid()) {
    return refuse(
        fmt::format("the folder of {} belongs to uid {}, not to uid {}: chown it, or name another place",
                    path, place->folder_owner, ::geteuid()));
  }
  // Again, since flock(2) wants more than O_PATH.
  Fd lock(::openat(place->folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock) return fail_errno(Reason::Internal, "open the folder of " + path);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return fail_errno(Reason::Internal, "lock the folder of " + path);
    auto pid = who_answers(*place);
    return already_running(*place, pid ? *pid : std::nullopt);
  }
  if (auto done = settle_folder(lock.get(), *place, operators); !done) return fail(std::move(done));
  ControlSocket socket(std::move(*place), std::move(lock));
  if (auto done = socket.make_room(); !done) return fail(std::move(done));
  if (auto done = socket.bind(operators); !done) return fail(std::move(done));
  return socket;
}

Status ControlSocket::make_room() {
  struct stat before{};
  const auto found = look(place_, before);
  if (!found) return fail(Result<bool>(found));
  if (!*found) return {};
  if (auto ok = check_is_socket(place_, before); !ok) return ok;
  if (before.st_uid != ::geteuid()) {
    return refuse(fmt::format("{} belongs to uid {}: remove it", place_.path, before.st_uid));
  }
  auto pid = who_answers(place_);
  if (!pid) return fail(std::move(pid));
  if (*pid) return already_running(place_, *pid);
  struct stat now{};
  const auto still = look(place_, now);
  if (!still) return fail(Result<bool>(still));
  if (*still && (now.st_dev != before.st_dev || now.st_ino != before.st_ino)) {
    return refuse(place_.path + " was replaced while we looked at it: start again");
  }
  if (*still && ::unlinkat(place_.folder.get(), place_.name.c_str(), 0) != 0) {
    return fail_errno(Reason::Internal, "remove " + place_.path);
  }
  return {};
}

Status ControlSocket::bind(std::optional<gid_t> operators) {
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return fail_errno(Reason::Internal, "socket");
  // unix(7): the name's mode is the socket's own, less the umask. So it is right from its first moment.
  if (::fchmod(socket.get(), 0600) != 0) return fail_errno(Reason::Internal, "chmod of the socket");
  const sockaddr_un address = address_of(place_.by_descriptor());
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return fail_errno(Reason::Internal, "bind " + place_.path);
  }
  struct stat facts{};
  const auto found = look(place_, facts);
  if (!found) return fail(Result<bool>(found));
  if (!*found || !S_ISSOCK(facts.st_mode) || facts.st_uid != ::geteuid() ||
      (facts.st_mode & kModeBits & ~0600U) != 0) {
    return refuse(place_.path + " is not what was just made there");
  }
  device_ = facts.st_dev;
  inode_ = facts.st_ino;
  socket_ = std::move(socket);  // from here on the destructor removes it

  const int folder = place_.folder.get();
  const char* name = place_.name.c_str();
  // Nobody but us and root may write in the folder, so that the name is still that socket.
  if (operators && ::fchownat(folder, name, static_cast<uid_t>(-1), *operators, AT_SYMLINK_NOFOLLOW) != 0) {
    return fail_errno(Reason::Internal, fmt::format("give {} to group {}", place_.path, *operators));
  }
  if (::fchmodat(folder, name, operators ? 0660 : 0600, 0) != 0) {
    return fail_errno(Reason::Internal, "chmod " + place_.path);
  }
  if (::listen(socket_.get(), kControlBacklog) != 0) return fail_errno(Reason::Internal, "listen");
  return {};
}

ControlSocket::~ControlSocket() {
  struct stat facts{};
  if (!socket_ || !place_.folder) return;
  const auto found = look(place_, facts);
  if (!found || !*found || facts.st_dev != device_ || facts.st_ino != inode_) return;
  ::unlinkat(place_.folder.get(), place_.name.c_str(), 0);
}

Result<Fd> connect_control(const std::string& path, uid_t self) {
  auto place = open_socket_place(path, self, MissingFolder::Fail);
  if (!place) return fail(std::move(place));
  if ((place->folder_mode & S_IRWXO) != 0) {
    return refuse(fmt::format("the folder of {} is open to everybody: no daemon of ours made it", path));
  }
  struct stat facts{};
  const auto found = look(*place, facts);
  if (!found) return fail(Result<bool>(found));
  if (!*found) return fail(Reason::UpstreamUnreachable, path + " is not there");
  if (auto ok = check_is_socket(*place, facts); !ok) return fail(std::move(ok));
  if (facts.st_uid != 0 && facts.st_uid != self) {
    return refuse(
        fmt::format("{} belongs to uid {}, neither to root nor to uid {}", path, facts.st_uid, self));
  }
  const mode_t mode = facts.st_mode & kModeBits;
  if (mode != 0600 && mode != 0660) {
    return refuse(fmt::format("{} has mode {:o}, not 600 or 660: no daemon of ours made it", path, mode));
  }
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return fail_errno(Reason::Internal, "socket");
  const timeval limit{.tv_sec = kConnectLimit.count(), .tv_usec = 0};
  if (::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) != 0) {
    return fail_errno(Reason::Internal, "SO_SNDTIMEO");
  }
  const int error = connect_to(socket.get(), *place);
  if (error == ECONNREFUSED || error == ENOENT) {
    return fail(Reason::UpstreamUnreachable, "nobody listens at " + path);
  }
  if (error == EAGAIN) return fail(Reason::Overloaded, "sallyportd is busy: nobody answered at " + path);
  if (error == EACCES) {
    return refuse(fmt::format("uid {} may not use {}: it is its owner's, and its group's where it has one",
                              self, path));
  }
  if (error != 0) return refuse(fmt::format("connect to {}: {}", path, errno_text(error)));
  auto peer = peer_of(socket.get());
  if (!peer) return fail(std::move(peer));
  // The one who called listen(2). A folder that is not ours to check may hide much; this does not.
  if (peer->uid != 0 && peer->uid != self) {
    return refuse(
        fmt::format("whoever listens at {} is uid {}, neither root nor uid {}", path, peer->uid, self));
  }
  return socket;
}

}  // namespace sallyport::os
