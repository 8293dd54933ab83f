#include "cli/serve_command.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <optional>
#include <utility>

#include "base/fd.h"
#include "base/visitor.h"
#include "cli/paths.h"
#include "cli/report.h"
#include "cli/trust_command.h"
#include "control/client.h"
#include "os/event_loop.h"

namespace sallyport::cli {
namespace {

bool has_terminal() {
  return static_cast<bool>(Fd(::open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC)));
}

// The doors, in the order in which the warden is asked for them.
std::vector<session::DoorRequest> requested_doors(const ServeOptions& options) {
  using enum wire::HostDoorUse;
  std::vector<session::DoorRequest> doors;
  for (const auto& [use, address] :
       {std::pair{Proxy, options.proxy}, {Tls, options.tls}, {Http, options.http}, {Dns, options.dns}}) {
    if (address) doors.push_back({use, *address});
  }
  for (const std::string& door : options.doors) doors.push_back({Fixed, door});
  return doors;
}

// As their options are named; of a fixed one its target.
std::string_view name_of(const session::DoorRequest& door) {
  switch (door.use) {
    case wire::HostDoorUse::Proxy:
      return "proxy";
    case wire::HostDoorUse::Tls:
      return "tls";
    case wire::HostDoorUse::Http:
      return "http";
    case wire::HostDoorUse::Dns:
      return "dns";
    case wire::HostDoorUse::Fixed:
      return std::string_view(door.text).substr(door.text.find('=') + 1);
  }
  return "";
}

std::string ready_line(const std::vector<session::DoorRequest>& doors,
                       const std::vector<std::string>& addresses) {
  std::string line = "ready: ";
  for (std::size_t i = 0; i < doors.size(); ++i) {
    line += fmt::format("{}{} {}", i > 0 ? ", " : "", name_of(doors[i]), addresses[i]);
  }
  return line;
}

boost::json::value ready_json(const std::vector<session::DoorRequest>& doors,
                              const std::vector<std::string>& addresses, const std::string& ca_file) {
  boost::json::object object;
  boost::json::array fixed;
  for (std::size_t i = 0; i < doors.size(); ++i) {
    if (doors[i].use == wire::HostDoorUse::Fixed) {
      fixed.push_back({{"address", addresses[i]}, {"target", name_of(doors[i])}});
    } else {
      object[name_of(doors[i])] = addresses[i];
    }
  }
  object["doors"] = std::move(fixed);
  if (!ca_file.empty()) object["ca_file"] = ca_file;
  return object;
}

class Serve {
 public:
  Serve(os::EventLoop& loop, control::Client warden, session::ServeRequest request, Format format)
      : loop_(loop), warden_(std::move(warden)), request_(std::move(request)), format_(format) {}

  int execute() {
    auto status = loop_.on_signals({SIGINT, SIGTERM, SIGHUP}, [this](int number) { on_signal(number); });
    if (!status) return failed(status.error());
    if (status = warden_.serve(request_); !status) return failed(status.error());
    loop_.watch(warden_.socket(), POLLIN, [this](short) { on_message(); });
    if (status = loop_.run(); !status) return failed(status.error());
    warden_.wait();
    return exit_code_;
  }

 private:
  // A terminal that is closed says SIGHUP too, and nobody is left then for whom to go on.
  void on_signal(int number) {
    const bool hung_up = number == SIGHUP && had_terminal_ && !has_terminal();
    (void)warden_.signal(hung_up ? SIGTERM : number);
  }

  void on_message() {
    auto message = warden_.receive();
    if (message && !*message) return;
    if (!message) return end(failed(message.error()));
    std::visit(
        Visitor{
            [](const control::Notice& notice) { fmt::print(stderr, "sallyport: {}\n", notice.text); },
            [](const control::Started&) {},  // to `run` alone, as is the next
            [](const control::Stopped&) {},
            [this](const control::Serving& serving) { on_ready(serving.addresses); },
            [this](const control::Reloaded& reloaded) { on_reloaded(reloaded.problem); },
            [this](const control::Finished& finished) { end(finished.exit_code); },
            [this](const control::Failed& failure) { end(failed({Reason::SessionEnded, failure.text})); },
        },
        **message);
  }

  void on_ready(const std::vector<std::string>& addresses) {
    const auto& doors = request_.doors;
    if (addresses.size() != doors.size()) {
      return end(failed({Reason::Internal, "the warden opened other doors than it was asked for"}));
    }
    fmt::print(stderr, "sallyport: {}\n", ready_line(doors, addresses));
    tell_script(ready_json(doors, addresses, request_.ca_file));
  }

  void on_reloaded(const std::string& problem) {
    if (!problem.empty()) {
      fmt::print(stderr, "sallyport: not reloaded: what was read before stays in force\n{}\n", problem);
    } else if (::isatty(STDERR_FILENO) == 1) {
      fmt::print(stderr, "sallyport: reloaded\n");
    }
    tell_script({{"reloaded", problem.empty()}});
  }

  void tell_script(const boost::json::value& news) {
    if (format_ == Format::Text) return;
    print_json(news);
    (void)std::fflush(stdout);  // a script reads it while we go on
  }

  void end(int exit_code) {
    exit_code_ = exit_code;
    loop_.unwatch(warden_.socket());
    loop_.stop();
  }

  os::EventLoop& loop_;
  control::Client warden_;
  session::ServeRequest request_;
  Format format_;
  int exit_code_ = kExitFailed;
  bool had_terminal_ = has_terminal();
};

}  // namespace

int serve_command(const ServeOptions& options) {
  const auto paths = find_paths();
  if (!paths) return failed(paths.error());
  session::ServeRequest request;
  request.sources = sources_of(options.files, *paths);
  if (!consent_before_run(request.sources)) return kExitFailed;
  request.audit_path = options.audit ? absolute(*options.audit, *paths) : paths->audit;
  if (options.ca_file) request.ca_file = absolute(*options.ca_file, *paths);
  request.doors = requested_doors(options);
  os::EventLoop loop;
  auto warden = control::Client::start_warden();
  if (!warden) return failed(warden.error());
  return Serve(loop, std::move(*warden), std::move(request), options.format).execute();
}

}  // namespace sallyport::cli
