// Real programs under the filter, in a real sandbox.

#include "sandbox/syscall_filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "sandbox/trial_test.h"

namespace sallyport::sandbox {
namespace {

using ::testing::HasSubstr;

TEST(SyscallFilter, IsAWholeNumberOfInstructions) {
  const auto file = syscall_filter();
  ASSERT_TRUE(file.has_value()) << file.error().detail;
  struct stat status{};
  ASSERT_EQ(::fstat(file->get(), &status), 0);
  EXPECT_GT(status.st_size, 0);
  EXPECT_EQ(status.st_size % 8, 0);
  EXPECT_LE(status.st_size / 8, 4096) << "BPF_MAXINSNS";
}

TEST(SyscallFilter, LetsOrdinaryProgramsWork) {
  const auto [exited, output] = run_script(
      "set -e; echo 'int main(){return 0;}' > x.c; tar cf x.tar x.c; gzip -k x.tar; sort x.c > y; find . "
      "-type f | wc -l\n"
      "git init -q r && cd r && git commit -q --allow-empty -m x && git gc -q && git log --oneline | wc -l\n"
      "(sleep 0.01 & wait); perl -e 'use Socket; socket(S, AF_INET, SOCK_STREAM, 0) or die; socketpair(A, B, "
      "AF_UNIX, "
      "SOCK_STREAM, 0) or die; print \"sockets\\n\"'");
  EXPECT_EQ(exited.shell_code(), 0) << output;
  EXPECT_EQ(output, "4\n1\nsockets\n");
}

TEST(SyscallFilter, LetsAddressesBeLookedUp) {
  const auto [exited, output] = run_script("getent ahosts localhost | head -1");
  EXPECT_EQ(exited.shell_code(), 0);
  EXPECT_THAT(output, HasSubstr("STREAM localhost"));
}

struct Refusal {
  const char* program;  // perl
  const char* says;
};

class RefusedCalls : public ::testing::TestWithParam<Refusal> {};

TEST_P(RefusedCalls, AreRefused) {
  Trial trial;
  trial.workload.argv = {
      "/usr/bin/perl", "-e",
      std::string("sub say_errno { print shift() == -1 ? \"$!\\n\" : \"worked\\n\" } ") + GetParam().program};
  EXPECT_EQ(trial.finish().shell_code(), 0) << trial.output();
  EXPECT_EQ(trial.output(), std::string(GetParam().says) + "\n");
}

// Numbers of x86-64, and of the architecture that the tests run on nowhere else.
#if defined(__x86_64__)
INSTANTIATE_TEST_SUITE_P(
    Table, RefusedCalls,
    ::testing::Values(
        Refusal{"say_errno(syscall(41, 40, 1, 0));", "Address family not supported by protocol"},  // AF_VSOCK
        // The upper half of a register is no way around.
        Refusal{"say_errno(syscall(41, 0x7700000028, 1, 0));", "Address family not supported by protocol"},
        Refusal{"say_errno(syscall(41, 38, 5, 0));", "Address family not supported by protocol"},  // AF_ALG
        Refusal{"say_errno(syscall(41, 17, 3, 0));",
                "Address family not supported by protocol"},  // AF_PACKET
        Refusal{"say_errno(syscall(41, 44, 3, 0));", "Address family not supported by protocol"},  // AF_XDP
        Refusal{"say_errno(syscall(41, 2, 0x80003, 1));", "Operation not permitted"},      // raw, CLOEXEC
        Refusal{"say_errno(syscall(41, 2, 1, 262));", "Protocol not supported"},           // MPTCP
        Refusal{"say_errno(syscall(41, 10, 1, 0x100000106));", "Protocol not supported"},  // the same
        Refusal{"say_errno(syscall(41, 16, 3, 9));", "Protocol not supported"},            // audit
        Refusal{"say_errno(syscall(41, 2, 2, 1));", "Operation not permitted"},            // ping
        Refusal{"say_errno(syscall(425, 1, 0));", "Operation not permitted"},              // io_uring
        Refusal{"say_errno(syscall(323, 0));", "Operation not permitted"},                 // userfaultfd
        Refusal{"say_errno(syscall(321, 0, 0, 0));", "Operation not permitted"},           // bpf
        Refusal{"say_errno(syscall(250, 0, 0));", "Operation not permitted"},              // keyctl
        Refusal{"say_errno(syscall(101, 16, 1, 0, 0));", "Operation not permitted"},       // PTRACE_ATTACH
        Refusal{"say_errno(syscall(272, 0x10000000));", "Operation not permitted"},        // NEWUSER
        Refusal{"say_errno(syscall(56, 0x10000011, 0, 0, 0, 0));", "Operation not permitted"},   // clone
        Refusal{"say_errno(syscall(272, 0x20000));", "Operation not permitted"},                 // NEWNS
        Refusal{"say_errno(syscall(272, 0x80));", "Operation not permitted"},                    // NEWTIME
        Refusal{"say_errno(syscall(279, 0, 0, 0, 0, 0, 0));", "Operation not permitted"},        // move_pages
        Refusal{"say_errno(syscall(435, 0, 0));", "Function not implemented"},                   // clone3
        Refusal{"$c = 'x'; say_errno(syscall(16, 0, 0x5412, $c));", "Operation not permitted"},  // TIOCSTI
        Refusal{"$c = 'x'; say_errno(syscall(16, 0, 0x100005412, $c));",
                "Operation not permitted"},                                                      // the same
        Refusal{"$c = 'x'; say_errno(syscall(16, 0, 0x541c, $c));", "Operation not permitted"},  // TIOCLINUX
        Refusal{"$c = 'xxxx'; say_errno(syscall(16, 0, 0x5423, $c));",
                "Operation not permitted"},                                               // TIOCSETD
        Refusal{"say_errno(syscall(135, 8));", "Operation not permitted"},                // personality
        Refusal{"say_errno(syscall(165, 0, 0, 0, 0, 0));", "Operation not permitted"},    // mount
        Refusal{"say_errno(syscall(298, 0, 0, -1, -1, 0));", "Operation not permitted"},  // perf
        Refusal{"say_errno(syscall(304, 0, 0, 0));", "Operation not permitted"}));        // by handle

TEST(SyscallFilter, KillsX32Calls) {
  Trial trial;
  trial.workload.argv = {"/usr/bin/perl", "-e", "syscall(0x40000000 + 39); print 'alive';"};
  EXPECT_EQ(trial.finish().signal, SIGSYS) << trial.output();
}

TEST(SyscallFilter, Kills32BitCalls) {
  // mov eax, 20 (getpid); int 0x80; mov edi, eax; mov eax, 60; xor edi, edi; syscall
  Trial trial;
  trial.workload.argv = {
      "/usr/bin/perl", "-MDynaLoader", "-e",
      "my $code = \"\\xb8\\x14\\x00\\x00\\x00\\xcd\\x80\\xc3\"; my $p = syscall(9, 0, 4096, 7, 0x22, -1, 0); "
      "open(my $m, '+<', '/proc/self/mem') or die; sysseek($m, $p, 0); syswrite($m, $code); "
      "my $x = DynaLoader::dl_install_xsub('main::entry', $p); entry(); print 'alive';"};
  EXPECT_EQ(trial.finish().signal, SIGSYS) << trial.output();
}
#endif

}  // namespace
}  // namespace sallyport::sandbox
