#include "sandbox/workload.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "base/text.h"

namespace sallyport::sandbox {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> result;
  // exec does not change them; its type is older than const.
  for (const std::string& text : strings) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

[[noreturn]] void give_up(const std::string& what, int error) {
  const std::string sentence = "sallyport: " + what + ": " + errno_text(error) + "\n";
  [[maybe_unused]] const ssize_t written = ::write(2, sentence.data(), sentence.size());
  ::_exit(error == ENOENT ? kNotFound : kCannotExecute);
}

void reset_signals() {
  struct sigaction standard{};
  standard.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) ::sigaction(signal, &standard, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

void limit_resources() {
  // One byte, not zero: with 1 the kernel also leaves out a core handler, which is a program of the host that
  // would run on what the sandbox made.
  const rlimit no_core{1, 1};
  ::setrlimit(RLIMIT_CORE, &no_core);
  rlimit processes{};
  if (::getrlimit(RLIMIT_NPROC, &processes) == 0 && processes.rlim_max > kMaxProcesses) {
    processes = {kMaxProcesses, kMaxProcesses};
    ::setrlimit(RLIMIT_NPROC, &processes);
  }
}

[[noreturn]] void execute(const Workload& workload) {
  limit_resources();
  reset_signals();
  if (::chdir(workload.cwd.c_str()) != 0) give_up("cannot enter " + escaped(workload.cwd), errno);
  std::vector<char*> argv = pointers(workload.argv);
  std::vector<char*> environment = pointers(workload.environment);
  environ = environment.data();  // execvp() searches this PATH
  ::execvp(argv[0], argv.data());
  give_up("cannot run " + escaped(workload.argv.front()), errno);
}

}  // namespace

Result<pid_t> start_workload(const Workload& workload, Terminal terminal) {
  const pid_t pid = ::fork();
  if (pid < 0) return fail_errno(Reason::Internal, "fork");
  if (pid == 0) {
    ::setpgid(0, 0);
    // SIGTTOU is still blocked here, else this would stop us.
    if (terminal == Terminal::Stdin) ::tcsetpgrp(0, ::getpid());
    execute(workload);
  }
  // In both, so that it holds whoever runs first: from here on Ctrl-C meets the workload.
  ::setpgid(pid, pid);
  if (terminal == Terminal::Stdin) ::tcsetpgrp(0, pid);
  return pid;
}

Result<pid_t> start_beside(const Workload& workload, std::array<int, 3> stdio, Terminal terminal) {
  const pid_t pid = ::fork();
  if (pid < 0) return fail_errno(Reason::Internal, "fork");
  if (pid > 0) return pid;
  ::setsid();
  for (int fd = 0; fd < 3; ++fd) {
    if (::dup2(stdio[static_cast<std::size_t>(fd)], fd) < 0) ::_exit(kCannotExecute);
  }
  if (terminal == Terminal::Stdin && ::ioctl(0, TIOCSCTTY, 0) != 0)
    give_up("cannot take the terminal", errno);
  execute(workload);
}

}  // namespace sallyport::sandbox
