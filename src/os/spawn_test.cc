#include "os/spawn.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <optional>
#include <stdexcept>

#include "os/inside_test.h"
#include "os/safe_path.h"

namespace sallyport::os {
namespace {

constexpr std::size_t kMaxOutput = 64 * 1024;

// Runs a shell script under `spec` and returns what it wrote to standard output.
std::string output_of(std::string script, SpawnSpec spec = {}) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return "pipe";
  const Fd read_end(ends[0]);
  Fd write_end(ends[1]);
  spec.program = "/bin/sh";
  spec.argv = {"sh", "-c", std::move(script)};
  spec.descriptors.push_back({write_end.get(), 1});
  auto child = spawn(spec);
  if (!child) return child.error().detail;
  write_end.reset();
  auto output = read_whole(read_end.get(), kMaxOutput);
  auto status = wait_child(*child);
  if (!status || !status->ok()) return "the script failed";
  return output ? *output : output.error().detail;
}

TEST(Spawn, GivesTheChildExactlyItsEnvironment) {
  EXPECT_EQ(output_of("/usr/bin/env | grep -v -e ^_= -e ^PWD=", {.environment = {"A=1", "B=two words"}}),
            "A=1\nB=two words\n");
}

TEST(Spawn, ClosesEveryDescriptorThatIsNotNamed) {
  const Fd leaked(::open("/dev/zero", O_RDONLY));  // without close-on-exec, on purpose
  const Fd passed(::open("/dev/full", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(output_of("for fd in 0 2 3 4 5 6 7 8 9 10 11 12 20; do readlink /proc/$$/fd/$fd; done; true",
                      {.descriptors = {{passed.get(), 20}}}),
            "/dev/null\n/dev/null\n/dev/full\n");
}

TEST(Spawn, ExchangesDescriptorsThatAreEachOthersTarget) {
  const Fd zero(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
  const Fd full(::open("/dev/full", O_RDONLY | O_CLOEXEC));
  const std::string script = "readlink /proc/$$/fd/" + std::to_string(zero.get()) +
                             "; readlink /proc/$$/fd/" + std::to_string(full.get());
  EXPECT_EQ(output_of(script, {.descriptors = {{zero.get(), full.get()}, {full.get(), zero.get()}}}),
            "/dev/full\n/dev/zero\n");
}

TEST(Spawn, ReturnsTheErrorOfAProgramThatCannotBeExecuted) {
  const struct {
    const char* name;
    SpawnSpec spec;
    const char* error;
  } cases[] = {
      {"missing",
       {.program = "/nonexistent", .argv = {"x"}},
       "start /nonexistent: execute: No such file or directory"},
      {"not executable",
       {.program = "/etc/passwd", .argv = {"x"}},
       "start /etc/passwd: execute: Permission denied"},
      {"no folder",
       {.program = "/bin/true", .argv = {"x"}, .working_directory = "/nonexistent"},
       "start /bin/true: enter the working directory: No such file or directory"},
      {"bad descriptor",
       {.program = "/bin/true", .argv = {"x"}, .descriptors = {{999, 5}}},
       "start /bin/true: arrange descriptors: Bad file descriptor"},
      {"no argv", {.program = "/bin/true"}, "start /bin/true: no argv[0]"},
      {"no namespace",
       {.program = "/bin/true", .argv = {"x"}, .user_namespace = STDERR_FILENO},
       "start /bin/true: enter the user namespace: Invalid argument"},
      {"no right to a process namespace",
       {.program = "/bin/true",
        .argv = {"x"},
        .become = testing::test_ids(),
        .pid_namespace = PidNamespace::Own},
       "start /bin/true: make a process namespace: Operation not permitted"},
  };
  for (const auto& test : cases) {
    auto child = spawn(test.spec);
    ASSERT_FALSE(child) << test.name;
    EXPECT_EQ(child.error().detail, test.error) << test.name;
  }
}

TEST(Spawn, ExecutesADescriptor) {
  const Fd program(::open("/bin/sh", O_PATH | O_CLOEXEC));
  auto child = spawn({.program = "the shell", .program_fd = program.get(), .argv = {"sh", "-c", "exit 7"}});
  ASSERT_TRUE(child) << child.error().detail;
  auto status = wait_child(*child);
  ASSERT_TRUE(status);
  EXPECT_EQ(status->code, 7);
}

TEST(Spawn, TellsExitCodesFromSignals) {
  auto child = spawn({.program = "/bin/sh", .argv = {"sh", "-c", "read x; exit 3"}});
  ASSERT_TRUE(child);
  auto exited = wait_child(*child);
  ASSERT_TRUE(exited);
  EXPECT_FALSE(exited->signal);
  EXPECT_EQ(exited->shell_code(), 3);
  EXPECT_EQ(exited->text(), "exit code 3");

  auto sleeper = spawn({.program = "/bin/sleep", .argv = {"sleep", "1000"}});
  ASSERT_TRUE(sleeper);
  auto running = poll_child(*sleeper);
  ASSERT_TRUE(running);
  EXPECT_FALSE(*running);
  ASSERT_TRUE(kill_child(*sleeper, SIGTERM));
  auto killed = wait_child_within(*sleeper, std::chrono::seconds(20));
  ASSERT_TRUE(killed && *killed);
  EXPECT_EQ((*killed)->signal, SIGTERM);
  EXPECT_EQ((*killed)->shell_code(), 128 + SIGTERM);
  EXPECT_EQ((*killed)->text(), "signal 15");
  EXPECT_TRUE(kill_child(*sleeper, SIGTERM)) << "one that has ended is no error";
}

TEST(Spawn, ResetsTheSignalsOfTheParent) {
  // In a child of the test, whose signals then stay as they were.
  testing::Forked parent([]() -> std::string {
    ::signal(SIGTERM, SIG_IGN);
    ::signal(SIGPIPE, SIG_IGN);
    sigset_t all;
    ::sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, nullptr);
    return output_of("grep -E '^Sig(Blk|Ign)' /proc/self/status | tr -s '\\t' ' '");
  });
  EXPECT_EQ(parent.finish(), "SigBlk: 0000000000000000\nSigIgn: 0000000000000000\n");
}

TEST(Spawn, MakesASession) {
  const std::string ids = "set -- $(cat /proc/$$/stat); echo $(($5 == $$)) $(($6 == $$))";
  EXPECT_EQ(output_of(ids), "0 0\n");
  EXPECT_EQ(output_of(ids, {.grouping = Grouping::NewSession}), "1 1\n");
}

TEST(Spawn, BecomesAnotherUserForGood) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can";
  EXPECT_EQ(
      output_of("grep -E '^(Uid|Gid|Groups|CapEff)' /proc/self/status | tr -s '\\t ' ' '",
                {.become = testing::kTestIds}),
      "Uid: 12345 12345 12345 12345\nGid: 12345 12345 12345 12345\nGroups: \nCapEff: 0000000000000000\n");
}

TEST(Spawn, EntersNamespacesAfterTheChangeOfIds) {
  auto builder = NamespaceBuilder::start({.helper = SALLYPORT_NETNS, .become = testing::test_ids()});
  ASSERT_TRUE(builder);
  auto space = builder->namespaces();
  ASSERT_TRUE(space) << space.error().detail;
  EXPECT_EQ(output_of("cat /proc/net/dev | tail -n +3 | cut -d: -f1 | tr -d ' '",
                      {.become = testing::test_ids(),
                       .user_namespace = space->user.get(),
                       .net_namespace = space->net.get()})
                .substr(0, 3),
            "lo\n");
}

TEST(Spawn, TiesTheChildToTheLifeOfItsParent) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const Fd read_end(ends[0]);
  {
    const Fd write_end(ends[1]);
    testing::Forked parent([&]() -> std::string {
      // The grandchild alone holds the pipe's end from here on.
      auto child = spawn({.program = "/bin/sleep",
                          .argv = {"sleep", "1000"},
                          .descriptors = {{write_end.get(), 9}},
                          .become = testing::test_ids(),
                          .parent_death_signal = SIGKILL});
      return child ? "" : child.error().detail;
    });
    ASSERT_EQ(parent.finish(), "");
  }
  char byte = 0;
  EXPECT_EQ(::read(read_end.get(), &byte, 1), 0);
}

// Namespaces for a test, and what a spec needs to start something in them.
struct OwnProcesses {
  OwnProcesses() {
    auto builder = NamespaceBuilder::start({.helper = SALLYPORT_NETNS, .become = testing::test_ids()});
    if (!builder) throw std::runtime_error(builder.error().detail);
    auto made = builder->namespaces();
    if (!made) throw std::runtime_error(made.error().detail);
    space = std::move(*made);
  }
  SpawnSpec spec() const {
    return {.become = testing::test_ids(),
            .user_namespace = space.user.get(),
            .pid_namespace = PidNamespace::Own,
            .parent_death_signal = SIGKILL};
  }
  Namespace space;
};

TEST(Spawn, MakesTheChildProcess1OfANamespaceWithItsOwnProc) {
  EXPECT_EQ(output_of("echo $$ $(readlink /proc/self)", OwnProcesses().spec()), "1 2\n");
}

TEST(Spawn, TellsTheExitCodeOfAChildWithItsOwnNamespace) {
  const OwnProcesses own;
  SpawnSpec spec = own.spec();
  spec.program = "/bin/sh";
  spec.argv = {"sh", "-c", "exit 7"};
  auto child = spawn(spec);
  ASSERT_TRUE(child) << child.error().detail;
  auto status = wait_child(*child);
  ASSERT_TRUE(status);
  EXPECT_EQ(status->code, 7);
}

TEST(Spawn, ReturnsTheErrorOfAChildWithItsOwnNamespaceThatCannotBeExecuted) {
  const OwnProcesses own;
  SpawnSpec spec = own.spec();
  spec.program = "/nonexistent";
  spec.argv = {"x"};
  auto child = spawn(spec);
  ASSERT_FALSE(child);
  EXPECT_EQ(child.error().detail, "start /nonexistent: execute: No such file or directory");
}

// A grandchild that took no precaution at all, as bubblewrap's in its first milliseconds.
constexpr char kGrandchildThatStays[] = "sleep 1000 >&9 & echo started; sleep 1000 >&9";

TEST(Spawn, KillsWhatAChildWithItsOwnNamespaceStarted) {
  const OwnProcesses own;
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const Fd read_end(ends[0]);
  std::optional<Child> child;
  {
    const Fd write_end(ends[1]);
    SpawnSpec spec = own.spec();
    spec.program = "/bin/sh";
    spec.argv = {"sh", "-c", kGrandchildThatStays};
    spec.descriptors = {{write_end.get(), 1}, {write_end.get(), 9}};
    auto started = spawn(spec);
    ASSERT_TRUE(started) << started.error().detail;
    child = std::move(*started);
  }
  char byte = 0;
  ASSERT_EQ(::read(read_end.get(), &byte, 1), 1);
  ASSERT_TRUE(kill_child(*child, SIGKILL));
  ASSERT_TRUE(wait_child(*child));
  EXPECT_NE(read_whole(read_end.get(), kMaxOutput)->find("tarted"), std::string::npos) << "or it hangs here";
}

TEST(Spawn, KillsWhatAChildWithItsOwnNamespaceStartedWhenTheParentEnds) {
  const OwnProcesses own;
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const Fd read_end(ends[0]);
  {
    const Fd write_end(ends[1]);
    testing::Forked parent([&]() -> std::string {
      SpawnSpec spec = own.spec();
      spec.program = "/bin/sh";
      spec.argv = {"sh", "-c", kGrandchildThatStays};
      spec.descriptors = {{write_end.get(), 1}, {write_end.get(), 9}};
      auto child = spawn(spec);
      char byte = 0;
      if (!child) return child.error().detail;
      return ::read(read_end.get(), &byte, 1) == 1 ? "" : "not started";
    });
    ASSERT_EQ(parent.finish(), "");
  }
  EXPECT_NE(read_whole(read_end.get(), kMaxOutput)->find("tarted"), std::string::npos) << "or it hangs here";
}

TEST(Process, FindsItsOwnFolderAndPrograms) {
  auto folder = own_folder();
  ASSERT_TRUE(folder);
  auto found = find_own_program("os_test");
  ASSERT_TRUE(found) << found.error().detail;
  EXPECT_EQ(*found, *folder + "/os_test");
  auto missing = find_own_program("no-such-program");
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().detail.find("no-such-program is neither in " + *folder), std::string::npos);
}

TEST(Process, RefusesAParentThatIsGone) {
  testing::Forked child([] {
    auto done = set_parent_death_signal(SIGTERM, ::getpid());
    return done ? "tied to itself" : done.error().detail;
  });
  EXPECT_EQ(child.finish(), "the parent process is gone");
}

}  // namespace
}  // namespace sallyport::os
