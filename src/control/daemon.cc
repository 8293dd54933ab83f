#include "control/daemon.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "base/random.h"
#include "control/session_routes.h"
#include "control/standard_routes.h"
#include "os/safe_path.h"
#include "session/request.h"

namespace sallyport::control {
namespace {

constexpr std::size_t kCanaryBytes = 16;

// Standard error is the daemon's log: its manager's journal, or a terminal.
void log(const std::string& line) {
  std::fprintf(stderr, "sallyportd: %s\n", line.c_str());
}

ApiServer::Observer logging() {
  return {
      .on_peer_refused =
          [](uid_t uid, const Error& why) {
            log(fmt::format("uid {} was refused at the control socket: {}", uid, why.detail));
          },
      .on_call = nullptr,
      .on_mistake =
          [](const std::string& request, const std::string& what) {
            log(fmt::format("this is a bug: request {}: {}", request, what));
          },
  };
}

// Of root's, private clones lie in it, to which each workspace's owner must come through.
Status make_state_folder(const std::string& path) {
  if (::geteuid() != 0) {
    auto folder = os::make_private_folder(path);
    return folder ? Status() : fail(std::move(folder));
  }
  if (::mkdir(path.c_str(), 0711) != 0 && errno != EEXIST)
    return fail_errno(Reason::Internal, "make " + path);
  return {};
}

session::Places with_runtime(session::Places places, const std::string& socket) {
  places.runtime = socket.substr(0, socket.rfind('/'));
  return places;
}

std::vector<Route> all_routes(Health health, Sessions& sessions, const ApiAccess& access,
                              session::Places places) {
  std::vector<Route> routes = standard_routes(std::move(health));
  std::ranges::move(session_routes(sessions, access, std::move(places)), std::back_inserter(routes));
  return routes;
}

}  // namespace

Daemon::Daemon(os::EventLoop& loop, Setup setup, os::Notifier notifier)
    : loop_(loop),
      setup_(std::move(setup)),
      notifier_(std::move(notifier)),
      gateway_(loop),
      sessions_(loop, gateway_),
      access_{.owner = ::geteuid(), .operators = setup_.operators},
      api_(loop, access_,
           all_routes(
               {.why_not_ready = [this] { return why_not_ready(); }, .metrics = [this] { return metrics(); }},
               sessions_, access_, with_runtime(setup_.places, setup_.socket)),
           logging()) {}

Status Daemon::serve() {
  const auto heard = loop_.on_signals({SIGTERM, SIGINT, SIGHUP}, [this](int number) { on_signal(number); });
  if (!heard) return heard;
  if (auto status = begin(); !status) return status;
  return loop_.run();
}

void Daemon::on_signal(int number) {
  if (number == SIGHUP) {
    return log(
        "a session reads its policy when it is started: `sallyport stop` and `start` it to apply another");
  }
  if (std::exchange(ending_, true)) return loop_.stop();
  notifier_.stopping();
  sessions_.end_all([this] { loop_.stop(); });
}

// The socket first: of two daemons one goes no further.
Status Daemon::begin() {
  ::setenv(session::kCanaryVariable, random_hex(kCanaryBytes).c_str(), 1);
  auto socket = os::ControlSocket::open(setup_.socket, setup_.operators);
  if (!socket) return fail(std::move(socket));
  socket_.emplace(std::move(*socket));
  if (auto status = make_state_folder(setup_.places.state); !status) return status;
  auto started = gateway_.start(session::service_identities({::geteuid(), ::getegid()}), true);
  if (!started) return started;
  api_.listen(socket_->fd());
  watch_over();
  notifier_.ready("serving at " + setup_.socket);
  return {};
}

void Daemon::watch_over() {
  const auto period =
      os::watchdog_period(std::getenv("WATCHDOG_USEC"), std::getenv("WATCHDOG_PID"), ::getpid());
  if (period) loop_.every(*period, [this] { notifier_.watchdog(); });
}

std::optional<std::string> Daemon::why_not_ready() {
  for (const session::ServiceProcess* process : {&gateway_.gate(), &gateway_.vault()}) {
    if (!process->running()) return process->name() + " died, and is started again";
  }
  return std::nullopt;
}

std::string Daemon::metrics() {
  const std::array processes{&gateway_.gate(), &gateway_.vault()};
  std::string text =
      "# HELP sallyport_process_up Whether the process runs.\n"
      "# TYPE sallyport_process_up gauge\n";
  for (const session::ServiceProcess* process : processes) {
    text += fmt::format("sallyport_process_up{{process=\"{}\"}} {}\n", process->name(),
                        process->running() ? 1 : 0);
  }
  text +=
      "# HELP sallyport_process_deaths_total How often it died, and was started again.\n"
      "# TYPE sallyport_process_deaths_total counter\n";
  for (const session::ServiceProcess* process : processes) {
    text += fmt::format("sallyport_process_deaths_total{{process=\"{}\"}} {}\n", process->name(),
                        process->deaths());
  }
  text += fmt::format(
      "# HELP sallyport_sessions Sessions whose sandbox is there.\n"
      "# TYPE sallyport_sessions gauge\n"
      "sallyport_sessions {}\n",
      sessions_.running());
  return text;
}

}  // namespace sallyport::control
