#include "control/daemon.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "base/random.h"
#include "control/metrics.h"
#include "control/session_routes.h"
#include "control/standard_routes.h"
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

session::Places with_runtime(session::Places places, const std::string& socket) {
  places.runtime = socket.substr(0, socket.rfind('/'));
  return places;
}

std::vector<Route> all_routes(os::EventLoop& loop, Health health, Shutdown shutdown, Sessions& sessions,
                              const ApiAccess& access, session::Places places) {
  std::vector<Route> routes = standard_routes(std::move(health));
  routes.push_back(shutdown_route(access, std::move(shutdown)));
  std::ranges::move(session_routes(loop, sessions, access, std::move(places)), std::back_inserter(routes));
  return routes;
}

}  // namespace

Daemon::Daemon(os::EventLoop& loop, Setup setup, os::Notifier notifier)
    : loop_(loop),
      setup_(std::move(setup)),
      notifier_(std::move(notifier)),
      gateway_(loop, container::Settings{.engine_socket = setup_.engine,
                                         .folder = setup_.places.state + "/containers",
                                         .mark = setup_.places.state}),
      sessions_(loop, gateway_),
      newcomers_(loop, *gateway_.containers(), sessions_, setup_.places, log),
      access_{.owner = ::geteuid(), .operators = setup_.operators},
      api_(loop, access_,
           all_routes(
               loop,
               {.why_not_ready = [this] { return why_not_ready(); }, .metrics = [this] { return metrics(); }},
               {.sessions = [this] { return sessions_.running(); }, .begin = [this] { end_in_order(); }},
               sessions_, access_, with_runtime(setup_.places, setup_.socket)),
           logging()) {}

Status Daemon::serve() {
  const auto heard = loop_.on_signals({SIGTERM, SIGINT, SIGHUP}, [this](int number) { on_signal(number); });
  if (!heard) return heard;
  if (auto status = begin(); !status) return status;
  return loop_.run();
}

void Daemon::on_signal(int number) {
  if (number == SIGHUP) return reload();
  if (ending_) return loop_.stop();
  end_in_order();
}

void Daemon::end_in_order() {
  if (std::exchange(ending_, true)) return;
  notifier_.stopping();
  sessions_.end_all([this] { loop_.stop(); });
}

// The manager is not kept waiting for the sessions: one that cannot take its files says so in our log.
void Daemon::reload() {
  notifier_.reloading();
  sessions_.reload_all([](const Sessions::Entry& entry, const session::Regranted& done) {
    log(fmt::format("session '{}' of uid {}: {}", entry.name, entry.owner,
                    !done.problem.empty()
                        ? "not reloaded: what was read before stays in force\n" + done.problem
                    : done.changes.empty() ? "reloaded: nothing is new"
                                           : fmt::format("reloaded\n{}", fmt::join(done.changes, "\n"))));
  });
  notifier_.ready("serving at " + setup_.socket);
}

// The socket first: of two daemons one goes no further.
Status Daemon::begin() {
  ::setenv(session::kCanaryVariable, random_hex(kCanaryBytes).c_str(), 1);
  auto socket = os::ControlSocket::open(setup_.socket, setup_.operators);
  if (!socket) return fail(std::move(socket));
  socket_.emplace(std::move(*socket));
  if (auto status = session::make_state_folder(setup_.places.state); !status) return status;
  auto started = gateway_.start(session::service_identities({::geteuid(), ::getegid()}), true);
  if (!started) return started;
  gateway_.containers()->recover();
  // Others' containers are the business of root's daemon: a user's engine makes none that it could enter.
  if (::geteuid() == 0) newcomers_.begin();
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

std::optional<NotReady> Daemon::why_not_ready() {
  for (const session::ServiceProcess* process : {&gateway_.gate(), &gateway_.vault()}) {
    if (!process->running()) {
      return NotReady{process->name() + " died, and is started again",
                      "It is started again by itself; its log says why it died."};
    }
  }
  return why_no_audit(setup_.places.audit());
}

std::string Daemon::metrics() {
  DaemonState state;
  for (const session::ServiceProcess* process : {&gateway_.gate(), &gateway_.vault()}) {
    state.processes.push_back({process->name(), process->running(), process->deaths()});
  }
  for (const SessionState each :
       {SessionState::Starting, SessionState::Running, SessionState::Stopping, SessionState::Ended}) {
    state.sessions[std::string(name(each))] = 0;
  }
  for (const Sessions::Entry* entry : sessions_.list({.uid = 0, .sees_all = true})) {
    ++state.sessions[std::string(name(entry->state))];
    if (entry->session && !entry->request.image.empty()) ++state.containers;
  }
  return metrics_text(state, gateway_.meter());
}

}  // namespace sallyport::control
