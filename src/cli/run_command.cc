#include "cli/run_command.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "base/visitor.h"
#include "cli/daemon_link.h"
#include "cli/paths.h"
#include "cli/report.h"
#include "cli/terminal_bridge.h"
#include "cli/trust_command.h"
#include "control/client.h"
#include "os/safe_path.h"
#include "sandbox/init_protocol.h"
#include "session/places.h"
#include "session/request.h"

namespace sallyport::cli {
namespace {

// One run, from the connected warden to its last word.
class Run {
 public:
  Run(os::EventLoop& loop, control::Client warden, TerminalBridge& terminal, const RunOptions& options,
      std::string audit_path)
      : loop_(loop),
        warden_(std::move(warden)),
        terminal_(terminal),
        options_(options),
        audit_path_(std::move(audit_path)) {}

  int execute(const session::Request& request) {
    // Before there is a command that they could be meant for.
    auto status =
        loop_.on_signals({SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT, SIGWINCH},
                         [this](int number) { on_signal(number); });
    if (!status) return fail_with(status.error());
    if (status = warden_.start(request, terminal_.sandbox_descriptors()); !status) {
      return fail_with(status.error());
    }
    terminal_.close_sandbox_side();
    loop_.watch(warden_.socket(), POLLIN, [this](short) { on_message(); });
    if (status = loop_.run(); !status) return fail_with(status.error());
    warden_.wait();
    return exit_code_;
  }

 private:
  void on_signal(int number) {
    if (number == SIGWINCH) return terminal_.window_changed();
    if (number == SIGCONT) return terminal_.resume();
    if (!started_) early_signal_ = number;  // if the warden ends everything, this is why
    (void)warden_.signal(number);
  }

  void on_message() {
    auto message = warden_.receive();
    if (message && !*message) return;
    if (!message) {
      fail_with(message.error());
      return end(kExitFailed);
    }
    std::visit(Visitor{
                   [this](const control::Notice& notice) { say(notice.text); },
                   [this](const control::Started&) { on_started(); },
                   [](const control::Serving&) {},  // to `serve` alone, as is the next
                   [](const control::Reloaded&) {},
                   [this](const control::Stopped&) { on_stopped(); },
                   [this](const control::Finished& finished) { on_finished(finished); },
                   [this](const control::Failed& failed) {
                     terminal_.finish();
                     fmt::print(stderr, "sallyport: {}\n", failed.text);
                     end(early_signal_ != 0 ? 128 + early_signal_ : kExitFailed);
                   },
               },
               **message);
  }

  void on_started() {
    started_ = true;
    if (auto status = terminal_.start(); !status) fail_with(status.error());
  }

  // The workload stopped itself: so do we, with the terminal as it was, and the shell that started us goes
  // on.
  void on_stopped() {
    terminal_.suspend();
    ::kill(::getpid(), SIGSTOP);
    terminal_.resume();
    (void)warden_.signal(SIGCONT);
  }

  void on_finished(const control::Finished& finished) {
    terminal_.finish();
    if (options_.verbosity != Verbosity::Quiet) fmt::print(stderr, "sallyport: {}\n", finished.summary);
    if (options_.verbosity == Verbosity::Verbose) {
      fmt::print(stderr, "sallyport: audit log: {}\n", audit_path_);
    }
    end(finished.exit_code);
  }

  void say(const std::string& text) {
    // In raw mode a line needs its carriage return.
    if (options_.verbosity != Verbosity::Quiet) {
      fmt::print(stderr, "sallyport: {}{}\n", text, started_ && terminal_.on_stdin() ? "\r" : "");
    }
  }

  int fail_with(const Error& error) {
    terminal_.finish();
    return failed(error);
  }

  void end(int exit_code) {
    exit_code_ = exit_code;
    loop_.unwatch(warden_.socket());
    loop_.stop();
  }

  os::EventLoop& loop_;
  control::Client warden_;
  TerminalBridge& terminal_;
  const RunOptions& options_;
  std::string audit_path_;
  bool started_ = false;
  int early_signal_ = 0;
  int exit_code_ = kExitFailed;
};

session::Request request_of(const RunOptions& options, const Paths& paths, const config::Sources& sources,
                            const TerminalBridge& terminal) {
  session::Request request;
  request.command = options.command;
  request.working_directory = paths.working_directory;
  request.home = paths.home;
  request.sources = sources;
  for (const std::string& mount : options.mounts) request.mounts.push_back(absolute(mount, paths));
  request.audit_path = options.audit ? absolute(*options.audit, paths) : paths.audit;
  // Root's own home is closed to the sandbox's uid, which must come through to a private clone.
  request.state_folder = ::geteuid() == 0 ? session::system_places().state : paths.state;
  request.private_git = options.workspace == Workspace::PrivateClone;
  request.environment = own_environment();
  request.extra_environment = options.environment;
  request.terminal_on_stdin = terminal.on_stdin();
  return request;
}

// What no guard covers is said once for each workspace: a file in the state folder remembers.
void warn_once(const Paths& paths) {
  struct stat workspace{};
  if (::stat(paths.working_directory.c_str(), &workspace) != 0) return;
  const std::string state = paths.audit.substr(0, paths.audit.rfind('/'));
  const auto seen = os::make_private_folder(state + "/seen");
  if (!seen) return;  // the warden will say what is wrong with the state folder
  const std::string name = fmt::format("{:x}-{:x}", workspace.st_dev, workspace.st_ino);
  const Fd mark(
      ::openat(seen->get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!mark) return;
  fmt::print(
      stderr,
      "sallyport: what a sandbox writes here (Makefile, .envrc, build scripts, repositories in subfolders) "
      "runs when you run it outside: look first. Said once for this workspace; see SECURITY.md\n");
}

}  // namespace

int run_command(const RunOptions& options) {
  const auto paths = find_paths();
  if (!paths) return failed(paths.error());
  config::Sources sources = sources_of(options.files, *paths);
  sources.git_options = options.git;
  if (!consent_before_run(sources)) return kExitFailed;
  os::EventLoop loop;
  TerminalBridge terminal(loop);
  if (auto status = terminal.open(); !status) return failed(status.error());
  const session::Request request = request_of(options, *paths, sources, terminal);
  auto warden = control::Client::start_warden();
  if (!warden) return failed(warden.error());
  if (options.verbosity != Verbosity::Quiet) warn_once(*paths);
  return Run(loop, std::move(*warden), terminal, options, request.audit_path).execute(request);
}

}  // namespace sallyport::cli
