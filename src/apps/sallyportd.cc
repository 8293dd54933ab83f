// The warden. Embedded (started by `sallyport run` with its socket as descriptor 3) it serves one session and
// ends; by itself it is the gateway of a host, and stays.

#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <string_view>

#include "control/daemon.h"
#include "control/server.h"

namespace {

using namespace sallyport;

constexpr const char* kHelp = R"(sallyportd: the gateway of a host, one for all of its sandboxes

  sallyportd [--socket PATH] [--group NAME] [--config FILE] [--state FOLDER] [--engine PATH]

  --socket PATH   where it is reached: an absolute path, in a folder of its own.
                  Default: /run/sallyport/control.sock, or as a user $XDG_RUNTIME_DIR/sallyport/control.sock
  --group NAME    members of this group may use it too
  --config FILE   the operator's file. Default: /etc/sallyport/config.toml, or as a user the one of `sallyport run`
  --state FOLDER  where the audit log is kept, and what a session with a private clone works on.
                  Default: /var/lib/sallyport, or as a user $XDG_STATE_HOME/sallyport (~/.local/state/sallyport)
  --engine PATH   the socket of the container engine that `sallyport new --image` uses. Default: /run/docker.sock

It stays in the foreground, and ends by SIGTERM or Ctrl-C. A service manager is told when it is ready (sd_notify).
Exit codes: 0 it was ended, 1 it could not start or go on, 2 wrong usage. docs/control-api.md has the calls.
)";

int complain(const std::string& what, int code) {
  std::fprintf(stderr, "sallyportd: %s\n", what.c_str());
  return code;
}

int serve_embedded() {
  os::EventLoop loop;
  control::Server server(loop, Fd(control::kEmbeddedSocketFd));
  const auto status = server.serve();
  return status ? 0 : complain(status.error().detail, 1);
}

int serve_host(control::Daemon::Setup setup) {
  if (setup.socket.empty() && ::geteuid() == 0) setup.socket = os::kSystemControlSocket;
  if (setup.socket.empty()) {
    auto socket = os::rootless_control_socket(std::getenv("XDG_RUNTIME_DIR"));
    if (!socket) return complain(socket.error().detail, 1);
    setup.socket = *std::move(socket);
  }
  auto notifier = os::Notifier::open(std::getenv("NOTIFY_SOCKET"));
  if (!notifier) return complain(notifier.error().detail, 1);
  os::EventLoop loop;
  control::Daemon daemon(loop, std::move(setup), *std::move(notifier));
  const auto status = daemon.serve();
  return status ? 0 : complain(status.error().detail, 1);
}

session::Places usual_places() {
  if (::geteuid() == 0) return session::system_places();
  if (const char* home = std::getenv("HOME"); home != nullptr && home[0] == '/')
    return session::user_places(home);
  const passwd* account = ::getpwuid(::geteuid());
  return session::user_places(account != nullptr ? account->pw_dir : "/nonexistent");
}

// What is wrong with the option, or "".
std::string set_option(control::Daemon::Setup& setup, std::string_view option, const std::string& value) {
  if (option == "--group") {
    const group* found = ::getgrnam(value.c_str());
    if (found == nullptr) return "there is no group '" + value + "'";
    setup.operators = found->gr_gid;
    return "";
  }
  std::string* path = option == "--socket"   ? &setup.socket
                      : option == "--config" ? &setup.places.config
                      : option == "--state"  ? &setup.places.state
                      : option == "--engine" ? &setup.engine
                                             : nullptr;
  if (path == nullptr) return "'" + std::string(option) + "' is no option; see sallyportd --help";
  if (!value.starts_with('/')) return std::string(option) + " wants an absolute path";
  *path = value;
  return "";
}

int run(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--embedded") return serve_embedded();
  control::Daemon::Setup setup;
  setup.places = usual_places();
  setup.engine = container::kDockerSocket;
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    if (option == "--help" || option == "-h") return std::fputs(kHelp, stdout) < 0 ? 1 : 0;
    const std::string value = i + 1 < argc ? argv[++i] : "";
    if (const std::string problem = set_option(setup, option, value); !problem.empty()) {
      return complain(problem, 2);
    }
  }
  return serve_host(std::move(setup));
}

}  // namespace

int main(int argc, char** argv) {
  // The canary in our environment and the grant are nobody else's business; and a broken pipe is an error,
  // not a death.
  ::prctl(PR_SET_DUMPABLE, 0);
  ::signal(SIGPIPE, SIG_IGN);
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    return complain(std::string("this is a bug: ") + error.what(), 1);
  }
}
