#include "os/inside_test.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace sallyport::os::testing {

std::optional<Ids> test_ids() {
  if (::geteuid() != 0) return std::nullopt;
  return kTestIds;
}

std::string become_user(const Ids& ids) {
  if (::geteuid() != 0) return "";
  if (auto done = become(ids); !done) return done.error().detail;
  return ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0 ? "" : "prctl";
}

Forked::Forked(const Body& body) {
  int ends[2];
  if (::pipe(ends) != 0) return;
  report_ = Fd(ends[0]);
  pid_ = ::_Fork();  // unlike fork() it starts no thread of a sanitizer in the child
  if (pid_ != 0) {
    ::close(ends[1]);
    return;
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  const std::string wrong = body();
  const ssize_t written = ::write(ends[1], wrong.data(), wrong.size());
  ::_exit(written == static_cast<ssize_t>(wrong.size()) ? 0 : 1);
}

Forked::~Forked() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

std::string Forked::finish() {
  if (pid_ <= 0) return "no child";
  std::string wrong;
  char piece[512];
  for (;;) {
    const ssize_t got = ::read(report_.get(), piece, sizeof piece);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    wrong.append(piece, static_cast<std::size_t>(got));
  }
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  if (WIFSIGNALED(status)) return wrong + " (killed by signal " + std::to_string(WTERMSIG(status)) + ")";
  if (WEXITSTATUS(status) != 0) return wrong + " (exit " + std::to_string(WEXITSTATUS(status)) + ")";
  return wrong;
}

Endpoint at(const char* address, std::uint16_t port) {
  return *endpoint_from(address, port);
}

Fd open_socket(const Endpoint& near, int type, int protocol) {
  return Fd(::socket(near.family, type | SOCK_CLOEXEC, protocol));
}

int connect_to(int socket, const Endpoint& where) {
  const SocketAddress address = socket_address(where);
  return ::connect(socket, address.get(), address.length) == 0 ? 0 : errno;
}

int bind_to(int socket, const Endpoint& where) {
  const SocketAddress address = socket_address(where);
  return ::bind(socket, address.get(), address.length) == 0 ? 0 : errno;
}

Body inside(const Namespace& space, Body body) {
  const int user = space.user.get();
  const int net = space.net.get();
  return [user, net, body = std::move(body)]() -> std::string {
    if (std::string wrong = become_user(kTestIds); !wrong.empty()) return wrong;
    if (::setns(user, CLONE_NEWUSER) != 0) return "setns user: " + errno_text(errno);
    if (::setns(net, CLONE_NEWNET) != 0) return "setns net: " + errno_text(errno);
    return body();
  };
}

}  // namespace sallyport::os::testing
