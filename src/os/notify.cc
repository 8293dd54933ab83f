#include "os/notify.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include <algorithm>
#include <cstddef>

#include "base/text.h"

namespace sallyport::os {
namespace {

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

std::optional<std::chrono::milliseconds> watchdog_period(const char* usec, const char* pid, pid_t self) {
  if (usec == nullptr) return std::nullopt;
  if (pid != nullptr && parse_decimal(pid) != static_cast<std::uint64_t>(self)) return std::nullopt;
  constexpr std::uint64_t kDay = 86'400'000'000;
  const auto period = parse_decimal(usec, kDay);
  if (!period || *period == 0) return std::nullopt;
  return std::max(std::chrono::milliseconds(1), std::chrono::milliseconds(*period / 2000));
}

}  // namespace sallyport::os
