#include "os/spawn.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "os/act_as.h"
#include "os/unix_socket.h"

namespace sallyport::os {

namespace {

// Debian 12's <linux/close_range.h> has it, glibc's <unistd.h> only with GNU extensions.
constexpr unsigned kCloseRangeCloexec = 1U << 2;

enum class Step : int {
  Signals,
  Group,
  Descriptors,
  Folder,
  Identity,
  UserNamespace,
  NetNamespace,
  PidNamespace,
  HandOver,  // no failure: another process goes on as the child
  ParentDeath,
  Memory,
  Execute,
};

const char* step_text(Step step) {
  switch (step) {
    case Step::Signals:
      return "reset signals";
    case Step::Group:
      return "make a session";
    case Step::Descriptors:
      return "arrange descriptors";
    case Step::Folder:
      return "enter the working directory";
    case Step::Identity:
      return "change uid and gid";
    case Step::UserNamespace:
      return "enter the user namespace";
    case Step::NetNamespace:
      return "enter the network namespace";
    case Step::PidNamespace:
      return "make a process namespace";
    case Step::HandOver:
      return "hand over";
    case Step::ParentDeath:
      return "be tied to the parent's life (is it gone?)";
    case Step::Memory:
      return "limit its memory";
    case Step::Execute:
      return "execute";
  }
  return "?";
}

// What the child writes to its parent.
struct Word {
  Step step;
  int value;  // errno of a step that failed; HandOver: the pid of the process that goes on
};

// Everything that the child needs, made before the fork: after it only async-signal-safe calls are allowed.
struct Plan {
  const SpawnSpec& spec;
  std::optional<Ids> become;
  bool is_acting = false;
  std::vector<char*> argv;
  std::vector<char*> environment;
  std::vector<DescriptorMap> descriptors;
  int above_targets = 3;  // no descriptor from here on is a target
};

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> result;
  result.reserve(strings.size() + 1);
  // execve(2) does not change them; its type is older than const.
  for (const std::string& text : strings) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

void tell(int report, Word word) {
  [[maybe_unused]] const ssize_t written = ::write(report, &word, sizeof word);
}

[[noreturn]] void give_up(int report, Step step) {
  tell(report, {step, errno});
  ::_exit(127);
}

void reset_signals() {
  struct sigaction standard = {};
  standard.sa_handler = SIG_DFL;
  // Fails for SIGKILL, SIGSTOP and the C library's own two: none of them matters.
  for (int signal = 1; signal < NSIG; ++signal) ::sigaction(signal, &standard, nullptr);
}

// The sources first move above all targets, so that no dup2() overwrites one that is still needed. Then
// everything is marked to close on exec, and dup2() makes the targets, which are not.
bool arrange_descriptors(std::vector<DescriptorMap>& descriptors, int above_targets) {
  for (DescriptorMap& map : descriptors) {
    map.source_fd = ::fcntl(map.source_fd, F_DUPFD_CLOEXEC, above_targets);
    if (map.source_fd < 0) return false;
  }
  if (::syscall(SYS_close_range, 0U, ~0U, kCloseRangeCloexec) != 0) return false;
  for (const DescriptorMap& map : descriptors) {
    if (::dup2(map.source_fd, map.target_fd) < 0) return false;
  }
  return true;
}

bool become_quietly(const Ids& ids) {
  return ::setgroups(ids.groups.size(), ids.groups.data()) == 0 &&
         ::setresgid(ids.gid, ids.gid, ids.gid) == 0 && ::setresuid(ids.uid, ids.uid, ids.uid) == 0;
}

bool limit_memory(std::uint64_t bytes) {
  const rlimit limit{bytes, bytes};
  return ::setrlimit(RLIMIT_AS, &limit) == 0;
}

// Whoever reads the reports is the parent, and only that.
bool parent_is_gone(int report) {
  pollfd reader{report, 0, 0};
  return ::poll(&reader, 1, 0) != 0;
}

// Not by getppid(): the parent has no number in a process namespace of the child's own.
bool tie_to_parent(int signal, int report) {
  if (::prctl(PR_SET_PDEATHSIG, signal, 0, 0, 0) != 0) return false;
  errno = ESRCH;
  return !parent_is_gone(report);
}

// Moves a descriptor out of the targets' way; it stays close-on-exec.
int lifted(int fd, int above_targets, int report) {
  const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, above_targets);
  if (copy < 0) give_up(report, Step::Descriptors);
  return copy;
}

// Goes on as process 1 of a new namespace, and as another child of the same parent; the process that called
// this ends. The new one waits until the parent can know of it: no process of ours is ever unknown to it.
void enter_own_pid_namespace(int report) {
  int go[2];
  if (::unshare(CLONE_NEWPID | CLONE_NEWNS) != 0 || ::pipe2(go, O_CLOEXEC) != 0) {
    give_up(report, Step::PidNamespace);
  }
  const long pid = ::syscall(SYS_clone, CLONE_PARENT | SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (pid < 0) give_up(report, Step::PidNamespace);
  char byte = 0;
  if (pid > 0) {
    tell(report, {Step::HandOver, static_cast<int>(pid)});
    ::_exit(::write(go[1], &byte, 1) == 1 ? 0 : 127);
  }
  ::close(go[1]);
  if (::read(go[0], &byte, 1) != 1) ::_exit(127);
  // A program that knows its children by number looks for them in /proc.
  if (::mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0) {
    give_up(report, Step::PidNamespace);
  }
}

[[noreturn]] void run_child(Plan& plan, int report, int report_reader) {
  const SpawnSpec& spec = plan.spec;
  ::close(report_reader);
  report = lifted(report, plan.above_targets, report);
  const int program = spec.program_fd ? lifted(*spec.program_fd, plan.above_targets, report) : -1;
  const int user = spec.user_namespace ? lifted(*spec.user_namespace, plan.above_targets, report) : -1;
  const int net = spec.net_namespace ? lifted(*spec.net_namespace, plan.above_targets, report) : -1;

  reset_signals();
  if (spec.grouping == Grouping::NewSession && ::setsid() < 0) give_up(report, Step::Group);
  if (!arrange_descriptors(plan.descriptors, plan.above_targets)) give_up(report, Step::Descriptors);
  if (!spec.working_directory.empty() && ::chdir(spec.working_directory.c_str()) != 0) {
    give_up(report, Step::Folder);
  }
  if (plan.is_acting && !take_rights_back()) give_up(report, Step::Identity);
  if (plan.become && !become_quietly(*plan.become)) give_up(report, Step::Identity);
  if (user >= 0 && ::setns(user, CLONE_NEWUSER) != 0) give_up(report, Step::UserNamespace);
  if (net >= 0 && ::setns(net, CLONE_NEWNET) != 0) give_up(report, Step::NetNamespace);
  if (spec.pid_namespace == PidNamespace::Own) enter_own_pid_namespace(report);
  // After every change of credentials: each of them clears it.
  if (spec.parent_death_signal && !tie_to_parent(*spec.parent_death_signal, report)) {
    give_up(report, Step::ParentDeath);
  }
  if (spec.max_memory && !limit_memory(*spec.max_memory)) give_up(report, Step::Memory);
  sigset_t none;
  ::sigemptyset(&none);
  if (::sigprocmask(SIG_SETMASK, &none, nullptr) != 0) give_up(report, Step::Signals);
  if (program >= 0) {
    ::syscall(SYS_execveat, program, "", plan.argv.data(), plan.environment.data(), AT_EMPTY_PATH);
  } else {
    ::execve(spec.program.c_str(), plan.argv.data(), plan.environment.data());
  }
  give_up(report, Step::Execute);
}

Result<Plan> make_plan(const SpawnSpec& spec, int null_device) {
  if (spec.argv.empty()) return fail(Reason::Internal, "start " + spec.program + ": no argv[0]");
  const auto acting = acting_as();
  Plan plan{.spec = spec,
            .become = spec.become ? spec.become : acting,
            .is_acting = acting.has_value(),
            .argv = pointers(spec.argv),
            .environment = pointers(spec.environment),
            .descriptors = spec.descriptors};
  for (int standard = 0; standard < 3; ++standard) {
    const bool named = std::ranges::any_of(
        spec.descriptors, [standard](const DescriptorMap& map) { return map.target_fd == standard; });
    if (!named) plan.descriptors.push_back({null_device, standard});
  }
  for (const DescriptorMap& map : plan.descriptors) {
    plan.above_targets = std::max(plan.above_targets, map.target_fd + 1);
  }
  return plan;
}

// What the child has to say until it executes its program, which closes the pipe.
struct Words {
  std::optional<Word> failure;
  std::optional<pid_t> successor;
};

Words read_words(int report) {
  Words words;
  while (true) {
    Word word{};
    const ssize_t got = ::read(report, &word, sizeof word);
    if (got < 0 && errno == EINTR) continue;
    if (got != static_cast<ssize_t>(sizeof word)) return words;
    if (word.step == Step::HandOver) {
      words.successor = word.value;
    } else {
      words.failure = word;
    }
  }
}

Result<std::optional<ExitStatus>> reap(const Child& child, int options) {
  siginfo_t ended = {};
  int done = -1;
  while ((done = ::waitid(P_PIDFD, static_cast<id_t>(child.pidfd.get()), &ended, WEXITED | options)) != 0 &&
         errno == EINTR) {
  }
  if (done != 0) return fail_errno(Reason::Internal, "waitid");
  if (ended.si_pid == 0) return std::optional<ExitStatus>();
  ExitStatus status;
  if (ended.si_code == CLD_EXITED) {
    status.code = ended.si_status;
  } else {
    status.signal = ended.si_status;
  }
  return status;
}

}  // namespace

Result<Child> known_child(pid_t pid) {
  Child child{pid, Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0U)))};
  if (child.pidfd) return child;
  auto error = fail_errno(Reason::Internal, "pidfd_open");
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  return error;
}

Result<Child> spawn(const SpawnSpec& spec) {
  Fd null_device(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null_device) return fail_errno(Reason::Internal, "open /dev/null");
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno(Reason::Internal, "pipe");
  Fd report_read(ends[0]);
  Fd report_write(ends[1]);
  auto plan = make_plan(spec, null_device.get());
  if (!plan) return fail(std::move(plan));

  // Blocked from before the fork until the child has reset them, so that no handler of ours runs in the
  // child.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  // _Fork: the child calls nothing but async-signal-safe functions, so no atfork handler has work in it.
  const pid_t pid = ::_Fork();
  if (pid == 0) run_child(*plan, report_write.get(), report_read.get());
  const int fork_error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) {
    errno = fork_error;
    return fail_errno(Reason::Internal, "start " + spec.program + ": fork");
  }

  report_write.reset();
  auto child = known_child(pid);
  if (!child) return fail(Reason::Internal, "start " + spec.program + ": " + child.error().detail);
  const Words words = read_words(report_read.get());
  if (words.successor) {
    static_cast<void>(wait_child(*child));
    child = known_child(*words.successor);
    if (!child) return fail(Reason::Internal, "start " + spec.program + ": " + child.error().detail);
  }
  if (words.failure || (spec.pid_namespace == PidNamespace::Own && !words.successor)) {
    static_cast<void>(wait_child(*child));
    const Word why = words.failure.value_or(Word{Step::PidNamespace, ECHILD});
    return fail(Reason::Internal,
                "start " + spec.program + ": " + step_text(why.step) + ": " + errno_text(why.value));
  }
  return child;
}

std::string ExitStatus::text() const {
  return signal ? "signal " + std::to_string(*signal) : "exit code " + std::to_string(code);
}

Result<ExitStatus> wait_child(const Child& child) {
  auto status = reap(child, 0);
  if (!status) return fail(std::move(status));
  if (!*status) return fail(Reason::Internal, "waitid: no status");
  return **status;
}

Result<std::optional<ExitStatus>> poll_child(const Child& child) {
  return reap(child, WNOHANG);
}

Result<std::optional<ExitStatus>> wait_child_within(const Child& child, std::chrono::milliseconds timeout) {
  auto ended = wait_readable(child.pidfd.get(), timeout);
  if (!ended) return fail(std::move(ended));
  if (!*ended) return std::optional<ExitStatus>();
  return poll_child(child);
}

Status kill_child(const Child& child, int signal) {
  if (::syscall(SYS_pidfd_send_signal, child.pidfd.get(), signal, nullptr, 0U) != 0 && errno != ESRCH) {
    return fail_errno(Reason::Internal, "pidfd_send_signal");
  }
  return {};
}

}  // namespace sallyport::os
