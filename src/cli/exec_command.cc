#include "cli/exec_command.h"

#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <boost/json.hpp>
#include <cstdlib>
#include <utility>

#include "base/text.h"
#include "cli/daemon_link.h"
#include "cli/report.h"
#include "cli/terminal_bridge.h"

namespace sallyport::cli {
namespace {

namespace json = boost::json;

struct Forwarded {
  int number;
  const char* name;
};
constexpr std::array kForwarded{Forwarded{SIGINT, "INT"},   Forwarded{SIGTERM, "TERM"},
                                Forwarded{SIGHUP, "HUP"},   Forwarded{SIGQUIT, "QUIT"},
                                Forwarded{SIGUSR1, "USR1"}, Forwarded{SIGUSR2, "USR2"},
                                Forwarded{SIGCONT, "CONT"}};

// What there is inside is not known out here.
constexpr const char* kShell = "command -v bash >/dev/null && exec bash; exec sh";
constexpr std::size_t kMaxShownBytes = 64;

// One command, from the call to its exit code.
class Exec {
 public:
  Exec(os::EventLoop& loop, control::ApiClient daemon, TerminalBridge& terminal, const ExecOptions& options)
      : loop_(loop), daemon_(std::move(daemon)), terminal_(terminal), options_(options) {}

  int execute(const std::string& path) {
    // Before there is a command that they could be meant for.
    const auto heard =
        loop_.on_signals({SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH},
                         [this](int number) { on_signal(number); });
    if (!heard) return failed(heard.error());
    const std::array<int, 3> stdio = terminal_.sandbox_descriptors();
    auto stream = daemon_.stream(
        {.method = "POST", .target = path, .body = request(), .descriptors = {stdio.begin(), stdio.end()}});
    if (!stream) return failed(stream.error());
    stream_.emplace(std::move(*stream));
    terminal_.close_sandbox_side();
    loop_.watch(stream_->socket(), POLLIN, [this](short) { read_lines(); });
    // What came with the answer's head is not seen by poll(2).
    if (read_lines()) {
      if (auto status = loop_.run(); !status) return failed(status.error());
    }
    terminal_.finish();
    return exit_code_;
  }

 private:
  json::object request() const {
    json::array environment(options_.environment.begin(), options_.environment.end());
    // The terminal is ours, whatever the session was made at.
    if (const char* term = terminal_.on_stdin() ? std::getenv("TERM") : nullptr) {
      environment.insert(environment.begin(), json::value(std::string("TERM=") + term));
    }
    json::object body{{"command", json::array(options_.command.begin(), options_.command.end())},
                      {"set_environment", std::move(environment)},
                      {"terminal", terminal_.on_stdin()}};
    if (!options_.working_directory.empty()) body["working_directory"] = options_.working_directory;
    return body;
  }

  // False: that was the last.
  bool read_lines() {
    for (;;) {
      auto step = stream_->next(std::chrono::milliseconds(0));
      if (!step) return end(step.error());
      if (step->kind == control::ApiStream::Step::Kind::NotYet) return true;
      if (step->kind == control::ApiStream::Step::Kind::End) {
        return end({Reason::UpstreamTruncated, "the daemon ended, and the session with it"});
      }
      if (const json::object* line = step->line.if_object(); line != nullptr && !on_line(*line)) return false;
    }
  }

  bool on_line(const json::object& line) {
    if (auto error = control::error_in(line)) return end(*error);
    if (const json::value* number = line.if_contains("command"); number != nullptr && number->is_int64()) {
      command_ = std::to_string(number->get_int64());
      if (auto status = terminal_.start(); !status) return end(status.error());
    }
    if (const json::value* code = line.if_contains("exit_code"); code != nullptr && code->is_int64()) {
      exit_code_ = static_cast<int>(code->get_int64());
      return stop();
    }
    return true;
  }

  void on_signal(int number) {
    if (number == SIGWINCH) return terminal_.window_changed();
    if (number == SIGCONT) return terminal_.resume();
    if (command_.empty()) {  // it does not run yet: without us it will not
      exit_code_ = kExitSignal + number;
      static_cast<void>(stop());
      return;
    }
    for (const Forwarded& signal : kForwarded) {
      if (signal.number == number) send(signal.name);
    }
  }

  void send(const char* signal) {
    auto path = session_path(options_.session, "/commands/" + command_ + "/signal");
    if (!path) return;
    const auto done =
        daemon_.call({.method = "POST", .target = *path, .body = json::object{{"signal", signal}}});
    if (!done) fmt::print(stderr, "sallyport: {}\n", done.error().detail);
  }

  bool end(const Error& error) {
    terminal_.finish();
    exit_code_ = failed(error);
    return stop();
  }

  bool stop() {
    loop_.unwatch(stream_->socket());
    loop_.stop();
    return false;
  }

  static constexpr int kExitSignal = 128;

  os::EventLoop& loop_;
  control::ApiClient daemon_;
  TerminalBridge& terminal_;
  const ExecOptions& options_;
  std::optional<control::ApiStream> stream_;
  std::string command_;  // its number, once it runs
  int exit_code_ = kExitFailed;
};

}  // namespace

int exec_command(const ExecOptions& options) {
  auto daemon = link_to_daemon(options.daemon);
  if (!daemon) return failed(daemon.error());
  auto path = session_path(options.session, "/exec");
  if (!path) return failed(path.error());
  os::EventLoop loop;
  TerminalBridge terminal(loop);
  if (auto status = terminal.open(); !status) return failed(status.error());
  return Exec(loop, std::move(*daemon), terminal, options).execute(*path);
}

int attach_command(const AttachOptions& options) {
  if (::isatty(STDIN_FILENO) == 0 || ::isatty(STDOUT_FILENO) == 0) {
    return failed(
        {Reason::BadRequest, fmt::format("this is no terminal: `sallyport exec {} -- COMMAND` needs none",
                                         escaped(options.session, kMaxShownBytes))});
  }
  return exec_command({.daemon = options.daemon,
                       .session = options.session,
                       .environment = {},
                       .working_directory = "",
                       .command = {"sh", "-c", kShell}});
}

}  // namespace sallyport::cli
