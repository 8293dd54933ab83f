#include "control/daemon.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/text.h"
#include "control/standard_routes.h"

namespace sallyport::control {
namespace {

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

}  // namespace

Daemon::Daemon(os::EventLoop& loop, Setup setup, os::Notifier notifier)
    : loop_(loop),
      setup_(std::move(setup)),
      notifier_(std::move(notifier)),
      gateway_(loop),
      api_(loop, {.owner = ::geteuid(), .operators = setup_.operators},
           standard_routes({.why_not_ready = [this] { return why_not_ready(); },
                            .metrics = [this] { return metrics(); }}),
           logging()) {}

Status Daemon::serve() {
  if (auto status = loop_.on_signals({SIGTERM, SIGINT}, [this](int) { loop_.stop(); }); !status) {
    return status;
  }
  if (auto status = begin(); !status) return status;
  if (auto status = loop_.run(); !status) return status;
  notifier_.stopping();
  return {};
}

// The socket first: of two daemons one goes no further.
Status Daemon::begin() {
  auto socket = os::ControlSocket::open(setup_.socket, setup_.operators);
  if (!socket) return fail(std::move(socket));
  socket_.emplace(std::move(*socket));
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
  return text;
}

}  // namespace sallyport::control
