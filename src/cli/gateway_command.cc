#include "cli/gateway_command.h"

#include <fmt/core.h>
#include <poll.h>

#include <boost/json.hpp>
#include <cerrno>
#include <chrono>

#include "cli/daemon_link.h"
#include "cli/report.h"
#include "os/peer.h"

namespace sallyport::cli {
namespace {

namespace json = boost::json;

// A session that is just starting is waited for.
constexpr std::chrono::minutes kReloadLimit{2};

int answer(const GatewayStatusOptions& options, bool ready, const std::string& version,
           const std::string& detail) {
  if (options.format == Format::Json) {
    const json::object object{{"ready", ready}, {"version", version}, {"detail", detail}};
    print_json(object);
  } else if (ready) {
    fmt::print("ready: sallyportd {}\n", version);
  } else {
    fmt::print(stderr, "sallyport: {}\n", detail);
  }
  return ready ? kExitOk : kExitNo;
}

// The line that a shutdown begins with.
void tell_ending(const json::value& line) {
  const json::object* object = line.if_object();
  const json::value* sessions = object == nullptr ? nullptr : object->if_contains("sessions");
  if (sessions == nullptr || !sessions->is_int64() || sessions->get_int64() == 0) return;
  fmt::print(stderr, "sallyport: sessions that end first: {}\n", sessions->get_int64());
}

// As long as its sessions take; Ctrl-C ends the wait alone.
void wait_for_end(const Fd& process) {
  pollfd entry{process.get(), POLLIN, 0};
  while (::poll(&entry, 1, -1) < 0 && errno == EINTR) {
  }
}

// Whether all is in force as the files are now.
bool show_reload(const json::object& reload, Verbosity verbosity) {
  const std::string name = control::text_of(reload, "name");
  if (const std::string problem = control::text_of(reload, "problem"); !problem.empty()) {
    fmt::print(stderr, "sallyport: {}: not reloaded: what was read before stays in force\n{}\n", name,
               problem);
    return false;
  }
  if (verbosity == Verbosity::Quiet) return true;
  const json::array& changes = reload.at("changes").as_array();
  fmt::print("{}: {}\n", name, changes.empty() ? "nothing is new" : "reloaded");
  for (const json::value& change : changes) fmt::print("  {}\n", std::string(change.as_string()));
  return true;
}

int reload(const control::ApiClient& daemon, const std::string& target, Verbosity verbosity) {
  const auto answer = daemon.call({.method = "POST", .target = target}, kReloadLimit);
  if (!answer) return failed(answer.error());
  int exit_code = kExitOk;
  for (const json::value& session : answer->at("sessions").as_array()) {
    if (!show_reload(session.as_object(), verbosity)) exit_code = kExitFailed;
  }
  return exit_code;
}

}  // namespace

int gateway_reload(const GatewayReloadOptions& options) {
  auto daemon = link_to_daemon(options.daemon);
  if (!daemon) return failed(daemon.error());
  if (options.sessions.empty()) return reload(*daemon, "/v1/reload", options.verbosity);
  int exit_code = kExitOk;
  for (const std::string& session : options.sessions) {
    auto path = session_path(session, "/reload");
    const int code = path ? reload(*daemon, *path, options.verbosity) : failed(path.error());
    if (code != kExitOk) exit_code = code;
  }
  return exit_code;
}

int gateway_status(const GatewayStatusOptions& options) {
  auto daemon = link_to_daemon(options.daemon);
  if (!daemon) return failed(daemon.error());
  const auto version = daemon->call({.method = "GET", .target = "/v1/version"});
  if (!version) return answer(options, false, "", version.error().detail);
  const json::object* object = version->if_object();
  const std::string number = object != nullptr ? control::text_of(*object, "version") : "";
  const auto ready = daemon->text({.method = "GET", .target = "/readyz"});
  return answer(options, ready.has_value(), number, ready ? "" : ready.error().detail);
}

int gateway_stop(const GatewayStopOptions& options) {
  auto daemon = link_to_daemon(options.daemon);
  if (!daemon) return failed(daemon.error());
  auto stream = daemon->stream({.method = "POST", .target = "/v1/shutdown"});
  if (!stream && stream.error().reason == Reason::UpstreamUnreachable) {
    fmt::print(stderr, "sallyport: no daemon runs at {}\n", daemon->path());
    return kExitOk;
  }
  if (!stream) return failed(stream.error());
  const auto process = os::open_peer_process(stream->socket());
  if (!process && process.error().reason != Reason::ClientClosed) return failed(process.error());
  if (const auto line = stream->next()) tell_ending(line->line);
  if (process) wait_for_end(*process);
  fmt::print(stderr, "sallyport: the daemon has ended\n");
  return kExitOk;
}

}  // namespace sallyport::cli
