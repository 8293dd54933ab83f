// A real sandbox: what the workload finds in it, and how it lives and ends.

#include "sandbox/runtime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "os/unix_socket.h"
#include "sandbox/terminal.h"
#include "sandbox/trial_test.h"
#include "sandbox/workload.h"

namespace sallyport::sandbox {
namespace {

using ::testing::HasSubstr;

TEST(Sandbox, RunsTheWorkloadAndPassesItsExitCodeOn) {
  Trial trial;
  trial.workload.argv = {"sh", "-c", "echo hello; exit 7"};
  EXPECT_EQ(trial.finish().shell_code(), 7) << trial.output();
  EXPECT_EQ(trial.output(), "hello\n");
  EXPECT_EQ(trial.wait().code, 7);
  EXPECT_EQ(trial.decoys().seen(), std::nullopt);
}

TEST(Sandbox, ReportsTheSignalThatKilledTheWorkload) {
  Trial trial;
  trial.workload.argv = {"sh", "-c", "kill -KILL $$"};
  EXPECT_EQ(trial.finish().signal, SIGKILL);
  EXPECT_EQ(trial.wait().code, 128 + SIGKILL);
}

TEST(Sandbox, SaysThatAProgramIsNotThere) {
  Trial trial;
  trial.workload.argv = {"no-such-program"};
  EXPECT_EQ(trial.finish().code, 127);
  EXPECT_EQ(trial.output(), "sallyport: cannot run no-such-program: No such file or directory\n");
}

TEST(Sandbox, SaysThatAFileCannotBeExecuted) {
  Trial trial;
  trial.workload.argv = {"/etc/passwd"};
  EXPECT_EQ(trial.finish().code, 126);
  EXPECT_EQ(trial.output(), "sallyport: cannot run /etc/passwd: Permission denied\n");
}

TEST(Sandbox, HasTheWorkspaceWritableAtItsOwnPath) {
  Trial trial;
  trial.workload.argv = {"sh", "-c", "pwd; echo made > file; cat file"};
  EXPECT_EQ(trial.finish().shell_code(), 0);
  EXPECT_EQ(trial.output(), trial.workspace() + "\nmade\n");
  struct stat status{};
  ASSERT_EQ(::stat((trial.workspace() + "/file").c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, trial.ids().uid);
}

TEST(Sandbox, HasTheUsersOwnSpellingOfALinkedWorkspace) {
  Trial trial;
  std::filesystem::create_directories(trial.folder() + "/links here");
  const std::string link = trial.folder() + "/links here/link";
  std::filesystem::create_symlink(trial.workspace(), link);
  auto mount = open_mount({.path = link}, {});
  ASSERT_TRUE(mount.has_value());
  trial.mounts.front() = std::move(*mount);
  trial.workload.cwd = link;
  trial.workload.argv = {"sh", "-c", "cd '" + link + "' && pwd -P"};
  EXPECT_EQ(trial.finish().shell_code(), 0);
  EXPECT_EQ(trial.output(), trial.workspace() + "\n");
}

TEST(Sandbox, KeepsAReadOnlyMountInsideTheWorkspaceReadOnly) {
  Trial trial;
  const std::string inner = trial.workspace() + "/inner";
  std::filesystem::create_directories(inner);
  std::filesystem::permissions(inner, std::filesystem::perms::all);
  auto mount = open_mount({.path = inner, .access = Access::ReadOnly}, {});
  ASSERT_TRUE(mount.has_value());
  // Given first: the order of the list does not matter.
  trial.mounts.insert(trial.mounts.begin() + 1, std::move(*mount));
  trial.workload.argv = {"sh", "-c", "touch inner/x"};
  EXPECT_NE(trial.finish().shell_code(), 0);
  EXPECT_THAT(trial.output(), HasSubstr("Read-only file system"));
}

TEST(Sandbox, HasOnlyReadOnlySystemFoldersAndEmptyPrivateOnes) {
  const auto [exited, output] = run_script(
      "for d in / /usr /etc /bin /home /var; do touch $d/x 2>/dev/null && echo writable $d; done\n"
      "ls -A /home/tester /var/tmp; ls /run; ls -A /home; touch /home/tester/a /tmp/a /var/tmp/a /run/a || "
      "echo private\n"
      "rm -f /run/sallyport/init 2>/dev/null && echo removed; cat /etc/resolv.conf /etc/hostname; hostname; "
      "whoami");
  EXPECT_EQ(exited.shell_code(), 0);
  EXPECT_EQ(
      output,
      "/home/tester:\n\n/var/tmp:\nsallyport\ntester\nnameserver 198.18.0.1\nsandbox\nsandbox\ntester\n");
}

TEST(Sandbox, ShowsNothingOfTheHostsProcessesAndDescriptors) {
  const auto [exited, output] =
      run_script("echo /proc/[0-9]*; ls /proc/self/fd; cat /proc/1/environ; ls /proc/1/fd");
  EXPECT_NE(exited.shell_code(), 0);
  EXPECT_THAT(output, HasSubstr("/proc/1 /proc/"));
  EXPECT_THAT(output, HasSubstr("\n0\n1\n2\n3\n"));  // 3 is ls's own
  EXPECT_THAT(output, HasSubstr("/proc/1/environ: Permission denied"));
  EXPECT_THAT(output, HasSubstr("cannot open directory '/proc/1/fd'"));
}

TEST(Sandbox, KeepsInitOutOfReachOfItsWorkload) {
  const auto [exited, output] =
      run_script("kill -KILL 1; kill -STOP 1; kill -INT 1; kill -HUP 1; echo alive");
  EXPECT_EQ(exited.shell_code(), 0);
  EXPECT_THAT(output, HasSubstr("alive"));
}

TEST(Sandbox, GivesGitItsSettings) {
  const auto [exited, output] = run_script(
      "git config user.name; git config user.email; git config core.hooksPath; git config "
      "protocol.file.allow;\n"
      "git config http.sslCAInfo; git config branch.autoSetupMerge; echo [$(git config credential.helper)]\n"
      "git init -q . && git commit -q --allow-empty -m x && git log --format=%an\n"
      "git clone -q . elsewhere 2>&1 || echo no local clone\n"
      "cat /etc/ssl/certs/ca-certificates.crt /etc/ssl/cert.pem");
  EXPECT_EQ(exited.shell_code(), 0);
  EXPECT_EQ(
      output,
      "Ann \"A\" Example\nann@example.com\n/dev/null\nnever\n/etc/ssl/certs/ca-certificates.crt\nfalse\n[]\n"
      "Ann \"A\" Example\nfatal: transport 'file' not allowed\nno local clone\n"
      "roots\nsession ca\nroots\nsession ca\n");
}

TEST(Sandbox, MakesNoCoreDumps) {
  EXPECT_EQ(run_script("ulimit -c; ulimit -H -c").output, "0\n0\n");  // the shell counts in blocks
}

TEST(Sandbox, ForwardsSignalsToTheWholeGroup) {
  Trial trial;
  trial.workload.argv = {"sh", "-c",
                         "trap 'echo got it; exit 3' TERM; echo ready; while :; do sleep 1; done"};
  trial.go();
  while (!trial.output().contains("ready")) ::usleep(1000);
  trial.send(ForwardSignal{kOwnCommand, SIGTERM});
  EXPECT_EQ(trial.finish().code, 3);
  EXPECT_THAT(trial.output(), HasSubstr("got it"));
}

TEST(Sandbox, EndsWithTheWarden) {
  Trial trial;
  trial.workload.argv = {"sleep", "1000"};
  trial.go();
  trial.send(ForwardSignal{kOwnCommand, SIGWINCH});  // does nothing to it
  trial.hang_up();
  EXPECT_EQ(trial.wait().code, 1);
}

TEST(Sandbox, EndsWhenItIsToldSomethingOutOfTurn) {
  Trial trial;
  trial.start();
  trial.send(Go{});
  EXPECT_EQ(std::get<Failed>(trial.receive()).check, Check::Setup);
  EXPECT_EQ(trial.wait().code, 1);
}

TEST(Sandbox, RunsCommandAfterCommandAndEndsWithNone) {
  Trial trial;
  trial.workload.argv = {};
  trial.go();
  trial.exec(1, {"sh", "-c", "echo one >made; exit 4"});
  EXPECT_EQ(std::get<Started>(trial.receive()).command, 1U);
  const auto first = std::get<Exited>(trial.receive());
  EXPECT_EQ(std::pair(first.command, first.code), std::pair(1U, std::uint8_t{4}));
  trial.exec(1, {"cat", "made"});  // the number is free again
  EXPECT_EQ(std::get<Started>(trial.receive()).command, 1U);
  EXPECT_EQ(std::get<Exited>(trial.receive()).code, 0);
  trial.exec(2, {"no-such-program"});
  EXPECT_EQ(std::get<Started>(trial.receive()).command, 2U);
  EXPECT_EQ(std::get<Exited>(trial.receive()).code, kNotFound);
  EXPECT_THAT(trial.output(), HasSubstr("one\n"));
  trial.hang_up();
  EXPECT_EQ(trial.wait().code, 1);
}

TEST(Sandbox, RunsCommandsAtOnceAndSignalsTheOneThatIsMeant) {
  Trial trial;
  trial.workload.argv = {};
  trial.go();
  for (CommandId command = 1; command <= kMaxCommands; ++command) {
    trial.exec(command, {"sleep", "1000"});
    EXPECT_EQ(std::get<Started>(trial.receive()).command, command);
  }
  trial.exec(1000, {"true"});
  EXPECT_EQ(std::get<Refused>(trial.receive()).command, 1000U);
  trial.send(ForwardSignal{1000, SIGKILL});  // nobody's
  trial.send(ForwardSignal{7, SIGKILL});
  const auto killed = std::get<Exited>(trial.receive());
  EXPECT_EQ(std::pair(killed.command, killed.signal), std::pair(7U, std::uint8_t{SIGKILL}));
  trial.exec(1000, {"true"});
  EXPECT_EQ(std::get<Started>(trial.receive()).command, 1000U);
  EXPECT_EQ(std::get<Exited>(trial.receive()).command, 1000U);
}

TEST(Sandbox, EndsWithItsOwnCommandWhateverElseRuns) {
  Trial trial;
  trial.workload.argv = {"sh", "-c", "until test -e go; do sleep 0.01; done; exit 5"};
  trial.go();
  trial.exec(1, {"sh", "-c", "echo >go; exec sleep 1000"});
  EXPECT_EQ(std::get<Started>(trial.receive()).command, 1U);
  const Exited exited = trial.finish();
  EXPECT_EQ(std::pair(exited.command, exited.code), std::pair(kOwnCommand, std::uint8_t{5}));
  EXPECT_EQ(trial.wait().code, 5);
}

TEST(Sandbox, GivesACommandItsTerminal) {
  Trial trial;
  trial.workload.argv = {};
  const auto outer = open_pty_like_80x24();
  auto pty = open_pty(outer.get());
  ASSERT_TRUE(pty.has_value());
  trial.go();
  trial.exec(1, {"sh", "-c", "stty size; echo ready; exec sleep 1000"}, pty->slave.get());
  pty->slave.reset();
  EXPECT_EQ(std::get<Started>(trial.receive()).command, 1U);
  std::string shown;
  // A shell that waits for a command leaves Ctrl-C to it: until stty is gone.
  while (!shown.contains("ready")) {
    ASSERT_TRUE(os::wait_readable(pty->master.get(), std::chrono::seconds(20)).value_or(false));
    char piece[256];
    const ssize_t got = ::read(pty->master.get(), piece, sizeof piece);
    if (got > 0) shown.append(piece, static_cast<std::size_t>(got));
  }
  EXPECT_THAT(shown, HasSubstr("24 80"));
  ASSERT_EQ(::write(pty->master.get(), "\x03", 1), 1);
  EXPECT_EQ(std::get<Exited>(trial.receive()).signal, SIGINT);
}

TEST(Sandbox, StopsAndGoesOnInItsOwnTerminal) {
  Trial trial;
  const auto outer = open_pty_like_80x24();
  auto pty = open_pty(outer.get());
  ASSERT_TRUE(pty.has_value()) << pty.error().detail;
  trial.spec.stdio = {pty->slave.get(), pty->slave.get(), pty->slave.get()};
  trial.spec.terminal = Terminal::Stdin;
  trial.workload.argv = {"sh", "-c",
                         "stty size; tty; kill -TSTP $$; echo back; read line; echo \"got $line\""};
  trial.go();
  pty->slave.reset();
  EXPECT_EQ(std::get<Stopped>(trial.receive()).signal, SIGTSTP);
  trial.send(Resume{});
  ASSERT_EQ(::write(pty->master.get(), "typed\n", 6), 6);
  EXPECT_EQ(trial.finish().shell_code(), 0);
  EXPECT_TRUE(trial.wait().ok());
  std::string shown;
  char piece[4096];
  for (ssize_t got = 0; (got = ::read(pty->master.get(), piece, sizeof piece)) > 0;) {
    shown.append(piece, static_cast<std::size_t>(got));
  }
  EXPECT_THAT(shown, HasSubstr("24 80"));
  EXPECT_THAT(shown, HasSubstr("back"));
  EXPECT_THAT(shown, HasSubstr("got typed"));
}

TEST(Sandbox, InterruptsTheForegroundByTheTerminal) {
  Trial trial;
  const auto outer = open_pty_like_80x24();
  auto pty = open_pty(outer.get());
  ASSERT_TRUE(pty.has_value());
  trial.spec.stdio = {pty->slave.get(), pty->slave.get(), pty->slave.get()};
  trial.spec.terminal = Terminal::Stdin;
  trial.workload.argv = {"sleep", "1000"};
  trial.go();
  ASSERT_EQ(::write(pty->master.get(), "\x03", 1), 1);
  EXPECT_EQ(trial.finish().signal, SIGINT);
}

TEST(Sandbox, IsNotStartedAsRootNorWithoutNamespaces) {
  Trial trial;
  const os::Ids ids = trial.spec.ids;
  trial.spec.ids = {0, ids.gid};
  EXPECT_FALSE(bubblewrap_call(trial.spec).has_value());
  trial.spec.ids = {ids.uid, 0};
  EXPECT_FALSE(bubblewrap_call(trial.spec).has_value());
  trial.spec.ids = ids;
  trial.spec.net_namespace = -1;
  EXPECT_FALSE(bubblewrap_call(trial.spec).has_value());
}

}  // namespace
}  // namespace sallyport::sandbox
