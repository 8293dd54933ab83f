#include "sandbox/init.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <optional>

#include "base/fd.h"
#include "os/unix_socket.h"
#include "sandbox/preflight.h"
#include "sandbox/workload.h"

namespace sallyport::sandbox {
namespace {

constexpr int kInitFailed = 1;

enum class Step { Phase1, Phase2, Go, Running };

class Init {
 public:
  explicit Init(int control) : control_(control) {}

  int run() {
    if (!close_others() || ::fcntl(control_, F_SETFD, FD_CLOEXEC) != 0) return kInitFailed;
    ::setsid();  // no way to the caller's terminal, and the right to take one of our own
    while (!exit_code_) {
      pollfd waiting[] = {{control_, POLLIN, 0}, {children_.get(), POLLIN, 0}};
      if (::poll(waiting, 2, -1) < 0 && errno != EINTR) return kInitFailed;
      if (waiting[1].revents != 0) reap();
      if (!exit_code_ && waiting[0].revents != 0) receive();
    }
    return *exit_code_;
  }

 private:
  // First of all: bubblewrap leaves the descriptors of the mounts open, and each would be a way out.
  bool close_others() const {
    const auto control = static_cast<unsigned>(control_);
    const bool below = control == 3 || ::syscall(SYS_close_range, 3U, control - 1U, 0U) == 0;
    return below && ::syscall(SYS_close_range, control + 1U, ~0U, 0U) == 0;
  }

  bool watch_children() {
    sigset_t blocked;
    ::sigemptyset(&blocked);
    ::sigaddset(&blocked, SIGCHLD);
    children_ = Fd(::signalfd(-1, &blocked, SFD_CLOEXEC | SFD_NONBLOCK));
    ::sigaddset(&blocked, SIGTTOU);  // to hand the foreground on while not in it
    return children_ && ::sigprocmask(SIG_SETMASK, &blocked, nullptr) == 0;
  }

  void send(const FromInit& message) {
    if (!os::send_packet(control_, encode(message))) exit_code_ = kInitFailed;
  }
  void send_failure(Failed failure) {
    send(std::move(failure));
    exit_code_ = kInitFailed;
  }
  void refuse(std::string detail) { send_failure({Check::Setup, std::move(detail)}); }

  void receive() {
    auto packet = os::recv_packet(control_);
    if (!packet || !*packet || (*packet)->end) {
      exit_code_ = kInitFailed;  // the warden is gone, and everything here ends with it
      return;
    }
    const auto message = decode_to_init((*packet)->bytes);
    if (!message) return refuse(message.error().detail);
    packet_fds_ = std::move((*packet)->fds);
    std::visit([this](const auto& content) { handle(content); }, *message);
    packet_fds_.clear();
  }

  void handle(const Phase1& phase) {
    if (step_ != Step::Phase1 || packet_fds_.size() != 1) return refuse("phase 1 out of turn");
    auto workload = unpack_workload(packet_fds_.front());
    if (!workload) return refuse(workload.error().detail);
    workload_ = std::move(*workload);
    terminal_ = phase.terminal;
    packet_fds_.clear();
    if (auto leak = run_phase1(phase, workload_, control_)) return send_failure(std::move(*leak));
    step_ = Step::Phase2;
    send(Passed{1});
  }

  void handle(const Phase2& phase) {
    if (step_ != Step::Phase2) return refuse("phase 2 out of turn");
    if (auto leak = run_phase2(phase)) return send_failure(std::move(*leak));
    step_ = Step::Go;
    send(Passed{2});
  }

  void handle(const Go&) {
    if (step_ != Step::Go) return refuse("start out of turn");
    // From here on hostile programs of the same uid run beside this one: they may not look into it.
    if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return refuse("cannot become undumpable");
    if (terminal_ == Terminal::Stdin && ::ioctl(0, TIOCSCTTY, 0) != 0) {
      return refuse("cannot take the terminal: " + errno_text(errno));
    }
    if (!watch_children()) return refuse("cannot watch children: " + errno_text(errno));
    if (!workload_.argv.empty()) {
      const auto started = start_workload(workload_, terminal_);
      if (!started) return refuse(started.error().detail);
      commands_[kOwnCommand] = *started;
    }
    step_ = Step::Running;
    send(Started{});
  }

  void handle(const Exec& exec) {
    if (step_ != Step::Running || packet_fds_.size() != 4) return refuse("a command out of turn");
    if (commands_.contains(exec.command)) return refuse("a command's number is taken");
    auto workload = unpack_workload(packet_fds_.front());
    if (!workload || workload->argv.empty()) return refuse("a command that is none");
    if (commands_.size() - commands_.count(kOwnCommand) >= kMaxCommands)
      return send(Refused{exec.command, "too many commands run in it"});
    const auto started = start_beside(
        *workload, {packet_fds_[1].get(), packet_fds_[2].get(), packet_fds_[3].get()}, exec.terminal);
    if (!started) return send(Refused{exec.command, started.error().detail});
    commands_[exec.command] = *started;
    send(Started{exec.command});
  }

  void handle(const ForwardSignal& message) {
    const auto command = commands_.find(message.command);
    if (command == commands_.end()) return;
    // Of a child that has no group yet, itself.
    if (::kill(-command->second, message.signal) != 0) ::kill(command->second, message.signal);
    // One that stopped itself would not hear that it shall end; the own command goes on with its caller.
    const bool ends = message.signal == SIGTERM || message.signal == SIGINT || message.signal == SIGHUP;
    if (ends && message.command != kOwnCommand) ::kill(-command->second, SIGCONT);
  }

  void handle(const Resume&) {
    const auto own = commands_.find(kOwnCommand);
    if (own == commands_.end()) return;
    if (terminal_ == Terminal::Stdin) ::tcsetpgrp(0, own->second);
    ::kill(-own->second, SIGCONT);
  }

  void reap() {
    signalfd_siginfo ignored{};
    while (::read(children_.get(), &ignored, sizeof ignored) == sizeof ignored) {
    }
    int status = 0;
    for (pid_t pid = 0; (pid = ::waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0;) {
      for (const auto& [command, its_pid] : commands_) {
        if (its_pid == pid) {
          report(command, status);
          break;
        }
      }
    }
  }

  void report(CommandId command, int status) {
    if (WIFSTOPPED(status)) {
      if (command == kOwnCommand) send(Stopped{static_cast<std::uint8_t>(WSTOPSIG(status))});
      return;
    }
    Exited exited;
    exited.command = command;
    if (WIFSIGNALED(status)) {
      exited.signal = static_cast<std::uint8_t>(WTERMSIG(status));
    } else {
      exited.code = static_cast<std::uint8_t>(WEXITSTATUS(status));
    }
    commands_.erase(command);
    send(exited);
    if (command == kOwnCommand) exit_code_ = exited.shell_code();
  }

  int control_;
  Fd children_;  // signalfd for SIGCHLD, once the workload runs
  Step step_ = Step::Phase1;
  std::vector<Fd> packet_fds_;
  Workload workload_;
  Terminal terminal_ = Terminal::None;
  std::map<CommandId, pid_t> commands_;  // those that run
  std::optional<int> exit_code_;
};

}  // namespace

int run_init(int control) {
  return Init(control).run();
}

int run_holder(int control) {
  for (;;) {
    pollfd end{control, POLLIN, 0};
    if (::poll(&end, 1, -1) < 0 && errno != EINTR) return kInitFailed;
    if (end.revents == 0) continue;
    const auto packet = os::recv_packet(control);
    if (packet && !*packet) continue;
    return packet && (*packet)->end ? 0 : kInitFailed;
  }
}

}  // namespace sallyport::sandbox
