#include "cli/gateway_start.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "cli/daemon_link.h"
#include "cli/paths.h"
#include "cli/report.h"
#include "os/event_loop.h"
#include "os/notify.h"
#include "os/process.h"
#include "os/safe_path.h"
#include "os/spawn.h"
#include "session/places.h"

namespace sallyport::cli {
namespace {

// From the daemon's begin until it is ready.
constexpr std::chrono::seconds kDaemonStartLimit{60};
constexpr std::size_t kMaxWordsBytes = std::size_t{16} * 1024;  // of a daemon that did not start
constexpr const char* kLogName = "/sallyportd.log";

// A new one each time; the former stays beside it.
Result<Fd> open_log(const std::string& path) {
  if (std::rename(path.c_str(), (path + ".old").c_str()) != 0 && errno != ENOENT) {
    return fail_errno(Reason::Internal, "rename " + path);
  }
  Fd log(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!log) return fail_errno(Reason::Internal, "make " + path);
  return log;
}

// What the manager of whoever starts us says is not for the daemon.
std::vector<std::string> environment_of_daemon(const std::string& notify_socket) {
  std::vector<std::string> variables = own_environment();
  std::erase_if(variables, [](const std::string& line) {
    const std::string_view name = std::string_view(line).substr(0, line.find('='));
    return name == "NOTIFY_SOCKET" || name == "WATCHDOG_USEC" || name == "WATCHDOG_PID";
  });
  variables.push_back("NOTIFY_SOCKET=" + notify_socket);
  return variables;
}

struct Daemon {
  std::string program;
  std::string socket;
  std::string state;
  GatewayStartOptions options;

  std::string log() const { return state + kLogName; }
  std::vector<std::string> argv(const Paths& paths) const {
    std::vector<std::string> words{"sallyportd", "--socket", socket, "--state", state};
    if (options.config) words.insert(words.end(), {"--config", absolute(*options.config, paths)});
    if (options.group) words.insert(words.end(), {"--group", *options.group});
    return words;
  }
};

// From its begin until it is ready, or is not going to be.
class Start {
 public:
  Start(Daemon daemon, const Paths& paths) : daemon_(std::move(daemon)), paths_(paths) {}

  int execute() {
    if (auto status = begin(); !status) return failed(status.error());
    loop_.watch(listener_->fd(), POLLIN, [this](short) { on_word(); });
    loop_.watch(child_.pidfd.get(), POLLIN, [this](short) { on_death(); });
    loop_.after(kDaemonStartLimit, [this] {
      end(Error{Reason::UpstreamTimeout,
                fmt::format("the daemon was not ready after {} s, and is ended", kDaemonStartLimit.count())});
    });
    if (auto status = loop_.run(); !status) end(status.error());
    return exit_code_;
  }

 private:
  Status begin() {
    if (auto status = loop_.on_signals({SIGINT, SIGTERM, SIGHUP}, [this](int number) { on_signal(number); });
        !status) {
      return status;
    }
    auto listener = os::NotifyListener::open();
    if (!listener) return fail(std::move(listener));
    listener_ = std::move(*listener);
    if (auto status = session::make_state_folder(daemon_.state); !status) return status;
    auto log = open_log(daemon_.log());
    if (!log) return fail(std::move(log));
    log_ = std::move(*log);
    auto child = os::spawn({.program = daemon_.program,
                            .argv = daemon_.argv(paths_),
                            .environment = environment_of_daemon(listener_->name()),
                            .descriptors = {{log_.get(), STDOUT_FILENO}, {log_.get(), STDERR_FILENO}},
                            .working_directory = "/",
                            .grouping = os::Grouping::NewSession});
    if (!child) return fail(std::move(child));
    child_ = std::move(*child);
    return {};
  }

  void on_word() {
    const auto ready = listener_->heard_ready(child_.pid);
    if (!ready) return end(ready.error());
    if (!*ready) return;
    fmt::print(stderr, "sallyport: the daemon is ready at {}; what it says is in {}\n", daemon_.socket,
               daemon_.log());
    exit_code_ = kExitOk;
    loop_.stop();
  }

  void on_death() {
    const auto status = os::wait_child(child_);
    std::string text = fmt::format("the daemon did not start: {}", status ? status->text() : "it is gone");
    for (const std::string& line : last_words()) text += "\n" + line;
    exit_code_ = failed({Reason::Internal, text});
    loop_.stop();
  }

  void on_signal(int number) {
    static_cast<void>(os::kill_child(child_, SIGTERM));
    exit_code_ = kExitSignal + number;
    loop_.stop();
  }

  void end(const Error& why) {
    static_cast<void>(os::kill_child(child_, SIGTERM));
    exit_code_ = failed(why);
    loop_.stop();
  }

  std::vector<std::string> last_words() const {
    std::vector<std::string> lines;
    static_cast<void>(::lseek(log_.get(), 0, SEEK_SET));
    const auto text = os::read_whole(log_.get(), kMaxWordsBytes);
    if (!text) return {"see " + daemon_.log()};
    for (const std::string_view line : split(*text, '\n')) {
      if (!line.empty()) lines.push_back(escaped(line, kMaxWordsBytes));
    }
    return lines;
  }

  static constexpr int kExitSignal = 128;

  Daemon daemon_;
  const Paths& paths_;
  os::EventLoop loop_;
  std::optional<os::NotifyListener> listener_;
  Fd log_;
  os::Child child_;
  int exit_code_ = kExitFailed;
};

Result<Daemon> daemon_for(const GatewayStartOptions& options, std::string socket, const Paths& paths) {
  auto program = os::find_own_program("sallyportd");
  if (!program) return fail(std::move(program));
  const std::string usual = ::geteuid() == 0 ? session::system_places().state : paths.state;
  return Daemon{.program = std::move(*program),
                .socket = std::move(socket),
                .state = options.state ? absolute(*options.state, paths) : usual,
                .options = options};
}

}  // namespace

int gateway_start(const GatewayStartOptions& options) {
  const auto paths = find_paths();
  if (!paths) return failed(paths.error());
  auto socket = own_socket(options.daemon);
  if (!socket) return failed(socket.error());
  const auto present =
      control::ApiClient(*socket, ::geteuid()).call({.method = "GET", .target = "/v1/version"});
  if (present) {
    fmt::print(stderr, "sallyport: a daemon runs already at {}\n", *socket);
    return kExitOk;
  }
  if (present.error().reason != Reason::UpstreamUnreachable) return failed(present.error());
  auto daemon = daemon_for(options, std::move(*socket), *paths);
  if (!daemon) return failed(daemon.error());
  return Start(std::move(*daemon), *paths).execute();
}

}  // namespace sallyport::cli
