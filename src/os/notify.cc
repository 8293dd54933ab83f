#include "os/notify.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "base/buffer.h"
#include "base/text.h"
#include "os/unix_socket.h"

namespace sallyport::os {
namespace {

constexpr std::size_t kMessageBytes = 4096;

// A line feed would begin another assignment.
std::string one_line(std::string_view text) {
  std::string line(text);
  std::ranges::replace_if(line, [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  return line;
}

}  // namespace

Result<Notifier> Notifier::open(const char* socket) {
  Notifier notifier;
  const std::string_view name = socket == nullptr ? "" : socket;
  if (name.empty()) return notifier;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if ((name[0] != '/' && name[0] != '@') || name.size() < 2 || name.size() >= sizeof address.sun_path) {
    return fail(Reason::Internal,
                fmt::format("NOTIFY_SOCKET is neither a path nor an abstract name: \"{}\"", escaped(name)));
  }
  name.copy(address.sun_path, name.size());
  // unix(7): an abstract name begins with NUL, and is as long as the address says.
  if (name[0] == '@') address.sun_path[0] = '\0';
  const std::size_t size = offsetof(sockaddr_un, sun_path) + name.size() + (name[0] == '/' ? 1 : 0);
  notifier.socket_ = Fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!notifier.socket_) return fail_errno(Reason::Internal, "socket");
  if (::connect(notifier.socket_.get(), reinterpret_cast<const sockaddr*>(&address),
                static_cast<socklen_t>(size)) != 0) {
    return fail_errno(Reason::Internal, fmt::format("connect to NOTIFY_SOCKET {}", escaped(name)));
  }
  return notifier;
}

void Notifier::ready(std::string_view status) {
  send(fmt::format("READY=1\nSTATUS={}", one_line(status)));
}

void Notifier::status(std::string_view text) {
  send("STATUS=" + one_line(text));
}

void Notifier::reloading() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  send(fmt::format("RELOADING=1\nMONOTONIC_USEC={}",
                   static_cast<std::int64_t>(now.tv_sec) * 1'000'000 + now.tv_nsec / 1000));
}

void Notifier::stopping() {
  send("STOPPING=1");
}

void Notifier::watchdog() {
  send("WATCHDOG=1");
}

void Notifier::send(const std::string& message) {
  if (socket_) (void)::send(socket_.get(), message.data(), message.size(), MSG_NOSIGNAL);
}

Result<NotifyListener> NotifyListener::open() {
  NotifyListener listener;
  listener.socket_ = Fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.socket_) return fail_errno(Reason::Internal, "socket");
  const int on = 1;
  if (::setsockopt(listener.socket_.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0) {
    return fail_errno(Reason::Internal, "SO_PASSCRED");
  }
  // unix(7), autobind: an abstract name that nobody else has.
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socklen_t size = sizeof(sa_family_t);
  if (::bind(listener.socket_.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) {
    return fail_errno(Reason::Internal, "bind");
  }
  size = sizeof address;
  if (::getsockname(listener.socket_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return fail_errno(Reason::Internal, "getsockname");
  }
  const std::size_t length = size - offsetof(sockaddr_un, sun_path);
  listener.name_ = "@" + std::string(address.sun_path + 1, length - 1);
  return listener;
}

Result<bool> NotifyListener::heard_ready(pid_t service) {
  bool ready = false;
  for (;;) {
    Buffer bytes(kMessageBytes);
    iovec part{bytes.all().data(), bytes.all().size()};
    // Without room for descriptors: the kernel closes them.
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(ucred))> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t got = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && would_block(errno)) return ready;
    if (got < 0) return fail_errno(Reason::Internal, "recvmsg");
    const cmsghdr* header = CMSG_FIRSTHDR(&message);
    if (header == nullptr || header->cmsg_type != SCM_CREDENTIALS) continue;
    ucred sender{};
    std::memcpy(&sender, CMSG_DATA(header), sizeof sender);
    if (sender.pid != service) continue;
    for (const std::string_view line : split(bytes.first(static_cast<std::size_t>(got)), '\n')) {
      ready = ready || line == "READY=1";
    }
  }
}

std::optional<std::chrono::milliseconds> watchdog_period(const char* usec, const char* pid, pid_t self) {
  if (usec == nullptr) return std::nullopt;
  if (pid != nullptr && parse_decimal(pid) != static_cast<std::uint64_t>(self)) return std::nullopt;
  constexpr std::uint64_t kDay = 86'400'000'000;
  const auto period = parse_decimal(usec, kDay);
  if (!period || *period == 0) return std::nullopt;
  return std::max(std::chrono::milliseconds(1), std::chrono::milliseconds(*period / 2000));
}

}  // namespace sallyport::os
