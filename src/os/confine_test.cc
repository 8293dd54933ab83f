#include "os/confine.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/vm_sockets.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <functional>

#include "base/random.h"
#include "os/endpoint.h"
#include "os/inside_test.h"
#include "os/unix_socket.h"

namespace sallyport::os {
namespace {

using testing::Forked;

// Two ids of nobody: one for the confined process, started by root or already without it.
constexpr Ids kConfinedIds{64990, 64990};

// The confined body, once with ids dropped by confine() and once rootless (same uid as its parent). The
// parent is this process.
std::string confined(Role role, bool rootless, const std::function<std::string()>& body) {
  Forked child([&]() -> std::string {
    Confinement confinement{.role = role, .become = std::nullopt};
    if (rootless) {
      if (std::string wrong = testing::become_user(kConfinedIds); !wrong.empty()) return wrong;
    } else if (::geteuid() == 0) {
      confinement.become = kConfinedIds;
    }
    if (auto done = apply(confinement); !done) return done.error().detail;
    return body();
  });
  return child.finish();
}

std::string refused(const char* what, long result) {
  if (result >= 0) return std::string(what) + " succeeded; ";
  const bool expected = errno == EPERM || errno == EACCES || errno == ENOENT;
  return expected ? "" : std::string(what) + ": " + errno_text(errno) + "; ";
}

struct Victim {
  pid_t pid;
  int listener_port;          // TCP, loopback
  std::string abstract_name;  // an abstract socket that listens
  char* memory;
};

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

std::string hostile_to_files() {
  std::string wrong = refused("open /etc/passwd", ::syscall(SYS_open, "/etc/passwd", O_RDONLY));
  wrong += refused("openat /etc/passwd", ::open("/etc/passwd", O_RDONLY));
  wrong += refused("open /proc/self/mem", ::open("/proc/self/mem", O_RDWR));
  wrong += refused("open .", ::open(".", O_RDONLY | O_DIRECTORY));
  wrong += refused("create", ::open("/tmp/sallyport-confined", O_CREAT | O_WRONLY, 0600));
  wrong += refused("O_PATH /", ::open("/", O_PATH));
  wrong += refused("O_TMPFILE", ::open("/tmp", O_TMPFILE | O_RDWR, 0600));
  wrong += refused("openat2", ::syscall(SYS_openat2, AT_FDCWD, "/etc/passwd", nullptr, 0));
  wrong += refused("unlink", ::unlink("/tmp/sallyport-confined"));
  wrong += refused("mkdir", ::mkdir("/tmp/sallyport-confined", 0700));
  wrong += refused("chdir", ::chdir("/"));
  wrong += refused("mount", ::syscall(SYS_mount, "none", "/tmp", "tmpfs", 0, nullptr));
  wrong += refused("open_by_handle_at", ::syscall(SYS_open_by_handle_at, 0, nullptr, 0));
  wrong += refused("memfd_create", ::syscall(SYS_memfd_create, "x", 0));
  char* const none[] = {nullptr};
  wrong += refused("execve", ::execve("/bin/true", none, none));
  wrong += refused("execveat", ::syscall(SYS_execveat, AT_FDCWD, "/bin/true", none, none, 0));
  return wrong;
}

std::string hostile_to_processes(const Victim& victim) {
  const std::string memory = "/proc/" + std::to_string(victim.pid) + "/mem";
  std::string wrong = refused("open the parent's memory", ::open(memory.c_str(), O_RDONLY));
  wrong += refused("ptrace", ::ptrace(PTRACE_ATTACH, victim.pid, nullptr, nullptr));
  wrong += refused("PTRACE_SEIZE", ::ptrace(PTRACE_SEIZE, victim.pid, nullptr, nullptr));
  char copy[8];
  const iovec here{copy, sizeof copy};
  const iovec there{victim.memory, sizeof copy};
  wrong += refused("process_vm_readv", ::process_vm_readv(victim.pid, &here, 1, &there, 1, 0));
  wrong += refused("process_vm_writev", ::process_vm_writev(victim.pid, &here, 1, &there, 1, 0));
  wrong += refused("kill", ::kill(victim.pid, 0));
  wrong += refused("kill all", ::kill(-1, 0));
  wrong += refused("tgkill", ::syscall(SYS_tgkill, victim.pid, victim.pid, 0));
  wrong += refused("pidfd_open", ::syscall(SYS_pidfd_open, victim.pid, 0));
  wrong += refused("fork", ::syscall(SYS_fork));
  wrong += refused("clone", ::syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  wrong += refused("unshare", ::unshare(CLONE_NEWUSER));
  wrong += refused("setns", ::setns(0, 0));
  wrong += refused("setuid", ::setuid(0));
  wrong +=
      refused("prlimit of the parent", ::syscall(SYS_prlimit64, victim.pid, RLIMIT_CORE, nullptr, nullptr));
  wrong += refused("become dumpable", ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0));
  wrong += refused("io_uring_setup", ::syscall(SYS_io_uring_setup, 1, nullptr));
  wrong += refused("bpf", ::syscall(SYS_bpf, 0, nullptr, 0));
  wrong += refused("userfaultfd", ::syscall(SYS_userfaultfd, 0));
  wrong += refused("keyctl", ::syscall(SYS_keyctl, 0, 0, 0, 0, 0));
  wrong += refused("perf_event_open", ::syscall(SYS_perf_event_open, nullptr, 0, 0, 0, 0));
  return wrong;
}

// Whatever else a kernel offers to get out, in or over something: by number, since few have a wrapper.
std::string hostile_to_kernel(const Victim& victim) {
  const struct {
    const char* name;
    long number;
    std::array<long, 5> arguments;
  } calls[] = {
      {"unshare mounts", SYS_unshare, {CLONE_NEWNS}},
      {"unshare network", SYS_unshare, {CLONE_NEWNET}},
      {"unshare pids", SYS_unshare, {CLONE_NEWPID}},
      {"clone into a user namespace", SYS_clone, {CLONE_NEWUSER | SIGCHLD}},
      {"clone a thread", SYS_clone, {CLONE_VM | CLONE_THREAD | CLONE_SIGHAND}},
      {"vfork", SYS_vfork, {}},
      {"chroot", SYS_chroot, {reinterpret_cast<long>("/")}},
      {"pivot_root", SYS_pivot_root, {reinterpret_cast<long>("/"), reinterpret_cast<long>("/")}},
      {"umount", SYS_umount2, {reinterpret_cast<long>("/proc"), 0}},
      {"fsopen", SYS_fsopen, {reinterpret_cast<long>("tmpfs"), 0}},
      {"open_tree", SYS_open_tree, {AT_FDCWD, reinterpret_cast<long>("/"), 0}},
      {"move_mount", SYS_move_mount, {AT_FDCWD, reinterpret_cast<long>("/"), AT_FDCWD, 0, 0}},
      {"name_to_handle_at", SYS_name_to_handle_at, {AT_FDCWD, reinterpret_cast<long>("/"), 0, 0, 0}},
      {"link", SYS_link, {reinterpret_cast<long>("/etc/passwd"), reinterpret_cast<long>("/tmp/sallyport-x")}},
      {"symlink", SYS_symlink, {reinterpret_cast<long>("/"), reinterpret_cast<long>("/tmp/sallyport-x")}},
      {"rename", SYS_rename, {reinterpret_cast<long>("/tmp"), reinterpret_cast<long>("/tmp/sallyport-x")}},
      {"mknod", SYS_mknod, {reinterpret_cast<long>("/tmp/sallyport-x"), S_IFIFO | 0600, 0}},
      {"truncate", SYS_truncate, {reinterpret_cast<long>("/tmp/sallyport-x"), 0}},
      {"chmod", SYS_chmod, {reinterpret_cast<long>("/tmp"), 0777}},
      {"readlink", SYS_readlink, {reinterpret_cast<long>("/proc/self/exe"), 0, 0}},
      {"stat", SYS_stat, {reinterpret_cast<long>("/etc/passwd"), 0}},
      {"access", SYS_access, {reinterpret_cast<long>("/etc/passwd"), 0}},
      {"inotify_init1", SYS_inotify_init1, {0}},
      {"fanotify_init", SYS_fanotify_init, {0, 0}},
      {"tkill", SYS_tkill, {victim.pid, 0}},
      {"rt_sigqueueinfo", SYS_rt_sigqueueinfo, {victim.pid, SIGUSR1, 0}},
      {"pidfd_send_signal", SYS_pidfd_send_signal, {0, 0, 0, 0}},
      {"pidfd_getfd", SYS_pidfd_getfd, {0, 0, 0}},
      {"process_madvise", SYS_process_madvise, {0, 0, 0, 0, 0}},
      {"kcmp", SYS_kcmp, {victim.pid, victim.pid, 0, 0, 0}},
      {"setpriority of the parent", SYS_setpriority, {0, victim.pid, 19}},
      {"sched_setaffinity of the parent", SYS_sched_setaffinity, {victim.pid, 0, 0}},
      {"setns", SYS_setns, {0, CLONE_NEWNET}},
      {"setresuid", SYS_setresuid, {0, 0, 0}},
      {"setgid", SYS_setgid, {0}},
      {"setgroups", SYS_setgroups, {0, 0}},
      {"capset", SYS_capset, {0, 0}},
      {"PR_SET_PTRACER", SYS_prctl, {PR_SET_PTRACER, static_cast<long>(PR_SET_PTRACER_ANY)}},
      {"PR_SET_MM", SYS_prctl, {PR_SET_MM, PR_SET_MM_EXE_FILE, 0}},
      {"io_uring_enter", SYS_io_uring_enter, {0, 0, 0, 0, 0}},
      {"io_uring_register", SYS_io_uring_register, {0, 0, 0, 0}},
      {"add_key", SYS_add_key, {0, 0, 0, 0, 0}},
      {"request_key", SYS_request_key, {0, 0, 0, 0}},
      {"init_module", SYS_init_module, {0, 0, 0}},
      {"finit_module", SYS_finit_module, {0, 0, 0}},
      {"kexec_load", SYS_kexec_load, {0, 0, 0, 0}},
      {"reboot", SYS_reboot, {0, 0, 0, 0}},
      {"syslog", SYS_syslog, {0, 0, 0}},
      {"acct", SYS_acct, {0}},
      {"swapon", SYS_swapon, {0, 0}},
      {"quotactl", SYS_quotactl, {0, 0, 0, 0}},
      {"iopl", SYS_iopl, {3}},
      {"personality", SYS_personality, {0x0040000}},
      {"modify_ldt", SYS_modify_ldt, {0, 0, 0}},
      {"shmget", SYS_shmget, {0, 4096, 01600}},
      {"msgget", SYS_msgget, {0, 01600}},
      {"mq_open", SYS_mq_open, {reinterpret_cast<long>("x"), O_CREAT, 0600, 0}},
      {"memfd_secret", SYS_memfd_secret, {0}},
      {"seccomp", SYS_seccomp, {1, 0, 0}},
  };
  std::string wrong;
  for (const auto& call : calls) {
    const auto& a = call.arguments;
    wrong += refused(call.name, ::syscall(call.number, a[0], a[1], a[2], a[3], a[4]));
  }
  return wrong;
}

std::string hostile_to_memory() {
  const std::size_t page = 4096;
  const auto failed = [](const void* where) { return where == MAP_FAILED ? -1L : 0L; };
  const int anonymous = MAP_PRIVATE | MAP_ANONYMOUS;
  std::string wrong = refused(
      "map code", failed(::mmap(nullptr, page, PROT_READ | PROT_WRITE | PROT_EXEC, anonymous, -1, 0)));
  void* data = ::mmap(nullptr, page, PROT_READ | PROT_WRITE, anonymous, -1, 0);
  wrong += data == MAP_FAILED ? "map data failed; " : "";
  wrong += refused("make data code", ::mprotect(data, page, PROT_READ | PROT_EXEC));
  wrong += refused("pkey_mprotect", ::syscall(SYS_pkey_mprotect, data, page, PROT_EXEC, -1));
  return wrong;
}

std::string hostile_to_network(const Victim& victim) {
  std::string wrong = refused("AF_VSOCK", ::socket(AF_VSOCK, SOCK_STREAM, 0));
  wrong += refused("AF_PACKET", ::socket(AF_PACKET, SOCK_DGRAM, 0));
  wrong += refused("AF_NETLINK", ::socket(AF_NETLINK, SOCK_RAW, 0));
  wrong += refused("AF_ALG", ::socket(AF_ALG, SOCK_SEQPACKET, 0));
  wrong += refused("AF_UNIX", ::socket(AF_UNIX, SOCK_STREAM, 0));
  for (const int family : {AF_XDP, AF_KEY, AF_BLUETOOTH, AF_TIPC, AF_CAN, AF_RDS, AF_IB, AF_NFC}) {
    for (const int type : {SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET}) {
      wrong += refused("a socket of another family", ::socket(family, type, 0));
    }
  }
  wrong += refused("raw", ::socket(AF_INET, SOCK_RAW, IPPROTO_ICMP));
  wrong += refused("ping", ::socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP));
  wrong += refused("MPTCP", ::socket(AF_INET, SOCK_STREAM, 262));
  wrong += refused("SCTP", ::socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP));
  int pair[2];
  wrong += refused("datagram pair", ::socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));

  // The ends of a permitted pair cannot be pointed elsewhere.
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return wrong + "no pair";
  sockaddr_un outside{};
  outside.sun_family = AF_UNIX;
  std::memcpy(outside.sun_path + 1, victim.abstract_name.data(), victim.abstract_name.size());
  const auto length =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + victim.abstract_name.size());
  if (::connect(pair[0], reinterpret_cast<const sockaddr*>(&outside), length) == 0) {
    wrong += "pair repointed; ";
  }
  ::close(pair[1]);
  if (::connect(pair[0], reinterpret_cast<const sockaddr*>(&outside), length) == 0) {
    wrong += "end repointed; ";
  }

  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in any = loopback(0);
  wrong += refused("bind", ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any));
  wrong += refused("listen", ::listen(socket.get(), 1));
  wrong += refused("F_SETOWN", ::fcntl(socket.get(), F_SETOWN, victim.pid));
  wrong += refused("ioctl", ::ioctl(socket.get(), 0x8901 /* FIOSETOWN */, &victim.pid));
  return wrong;
}

std::string permitted_work(const Victim& victim) {
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const sockaddr_in address = loopback(victim.listener_port);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
      errno != EINPROGRESS) {
    return "connect: " + errno_text(errno);
  }
  const Fd epoll(::epoll_create1(EPOLL_CLOEXEC));
  epoll_event event{};
  event.events = EPOLLOUT;
  if (::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, socket.get(), &event) != 0) return "epoll_ctl";
  if (::epoll_wait(epoll.get(), &event, 1, 10'000) != 1) return "epoll_wait";
  int error = -1;
  socklen_t length = sizeof error;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length) != 0 || error != 0) return "SO_ERROR";

  auto pair = socket_pair(SocketKind::Packet);
  if (!pair) return "socketpair: " + pair.error().detail;
  const int passed[] = {socket.get()};
  if (auto sent = send_packet(pair->first.get(), "lane", passed); !sent) return sent.error().detail;
  auto packet = recv_packet(pair->second.get());
  if (!packet || !*packet || (*packet)->fds.size() != 1) return "descriptor passing";
  if (random_hex(4).size() != 8) return "getrandom";
  const Fd timer(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  itimerspec soon{};
  soon.it_value.tv_nsec = 1;
  if (::timerfd_settime(timer.get(), 0, &soon, nullptr) != 0) return "timerfd";
  if (!wait_readable(timer.get(), std::chrono::seconds(10)).value_or(false)) return "timerfd does not fire";
  void* page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED || ::mlock(page, 4096) != 0) return "mlock";
  const Fd udp(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return udp ? "" : "udp socket";
}

class Confine : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    listener_ = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in any = loopback(0);
    ASSERT_EQ(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any), 0);
    ASSERT_EQ(::listen(listener_.get(), 16), 0);
    sockaddr_storage bound{};
    socklen_t length = sizeof bound;
    ASSERT_EQ(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&bound), &length), 0);

    abstract_ = Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    victim_.abstract_name = "sallyport-test-" + random_hex(8);
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    std::memcpy(name.sun_path + 1, victim_.abstract_name.data(), victim_.abstract_name.size());
    ASSERT_EQ(
        ::bind(abstract_.get(), reinterpret_cast<const sockaddr*>(&name),
               static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + victim_.abstract_name.size())),
        0);
    ASSERT_EQ(::listen(abstract_.get(), 1), 0);
    victim_.pid = ::getpid();
    victim_.listener_port = endpoint_from(bound)->port;
    victim_.memory = memory_;
  }

  Fd listener_;
  Fd abstract_;
  char memory_[8] = "victim";
  Victim victim_{};
};

TEST_P(Confine, LeavesAHostileGateNoFile) {
  EXPECT_EQ(confined(Role::Gate, GetParam(), hostile_to_files), "");
}

TEST_P(Confine, LeavesAHostileVaultNoFile) {
  EXPECT_EQ(confined(Role::Vault, GetParam(), hostile_to_files), "");
}

TEST_P(Confine, LeavesAHostileGateNoProcess) {
  for (const Role role : {Role::Gate, Role::Vault}) {
    EXPECT_EQ(confined(role, GetParam(), [this] { return hostile_to_processes(victim_); }), "");
  }
}

TEST_P(Confine, LeavesAHostileGateAndVaultNothingElseOfTheKernel) {
  for (const Role role : {Role::Gate, Role::Vault}) {
    EXPECT_EQ(confined(role, GetParam(), [this] { return hostile_to_kernel(victim_); }), "");
  }
}

TEST_P(Confine, LeavesNoWayToRunOwnCode) {
  for (const Role role : {Role::Gate, Role::Vault}) {
    EXPECT_EQ(confined(role, GetParam(), hostile_to_memory), "");
  }
}

TEST_P(Confine, LeavesAHostileGateNoOtherSocket) {
  for (const Role role : {Role::Gate, Role::Vault}) {
    EXPECT_EQ(confined(role, GetParam(), [this] { return hostile_to_network(victim_); }), "");
  }
}

TEST_P(Confine, LeavesWhatAGateAndAVaultNeed) {
  for (const Role role : {Role::Gate, Role::Vault}) {
    EXPECT_EQ(confined(role, GetParam(), [this] { return permitted_work(victim_); }), "");
  }
}

// The other direction: the same uid outside can neither trace nor read a confined process.
TEST_P(Confine, KeepsTheSameUidOutsideFromLookingIn) {
  auto pair = socket_pair(SocketKind::Stream);
  ASSERT_TRUE(pair);
  const int child_end = pair->second.get();
  Forked target([&]() -> std::string {
    if (std::string wrong = testing::become_user(kConfinedIds); !wrong.empty()) return wrong;
    const pid_t pid = ::getpid();
    if (auto done = apply({.role = Role::Vault, .become = std::nullopt}); !done) return done.error().detail;
    if (::write(child_end, &pid, sizeof pid) != sizeof pid) return "write";
    char end = 0;
    return ::read(child_end, &end, 1) == 1 ? "" : "read";
  });
  pid_t pid = 0;
  ASSERT_TRUE(wait_readable(pair->first.get(), std::chrono::seconds(20)).value_or(false));
  ASSERT_EQ(::read(pair->first.get(), &pid, sizeof pid), static_cast<ssize_t>(sizeof pid));
  Forked spy([pid]() -> std::string {
    if (std::string wrong = testing::become_user(kConfinedIds); !wrong.empty()) return wrong;
    const std::string folder = "/proc/" + std::to_string(pid);
    std::string wrong = refused("mem", ::open((folder + "/mem").c_str(), O_RDONLY));
    wrong += refused("environ", ::open((folder + "/environ").c_str(), O_RDONLY));
    wrong += refused("fd", ::open((folder + "/fd").c_str(), O_RDONLY));
    wrong += refused("ptrace", ::ptrace(PTRACE_SEIZE, pid, nullptr, nullptr));
    return wrong;
  });
  EXPECT_EQ(spy.finish(), "");
  ASSERT_EQ(::write(pair->first.get(), "x", 1), 1);
  EXPECT_EQ(target.finish(), "");
}

INSTANTIATE_TEST_SUITE_P(Started, Confine, ::testing::Values(false, true),
                         [](const auto& test) { return test.param ? "Rootless" : "AsStarted"; });

// Landlock alone, without the filter before it: each wall stands by itself.
TEST(ConfineLandlock, ClosesTheFileSystemAndForeignSockets) {
  Forked child([]() -> std::string {
    if (std::string wrong = testing::become_user(kConfinedIds); !wrong.empty()) return wrong;
    if (auto done = set_no_new_privileges(); !done) return done.error().detail;
    if (auto done = leave_file_system(); !done) return done.error().detail;
    std::string wrong = refused("read", ::open("/etc/passwd", O_RDONLY));
    wrong += refused("list", ::open("/usr", O_RDONLY | O_DIRECTORY));
    wrong += refused("make", ::open("/tmp/sallyport-confined", O_CREAT | O_WRONLY, 0600));
    return wrong;
  });
  EXPECT_EQ(child.finish(), "");
}

TEST(ConfineSteps, NeverLeaveRoot) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can try";
  Forked child([] {
    auto done = apply({.role = Role::Gate, .become = std::nullopt});
    return done ? "applied" : done.error().detail;
  });
  EXPECT_EQ(child.finish(), "confine: the gate and the vault never run as root; name a uid to become");
}

TEST(ConfineSteps, StayTiedToTheParentsLife) {
  Forked child([]() -> std::string {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    const auto ids = ::geteuid() == 0 ? std::optional(kConfinedIds) : std::nullopt;
    if (auto done = drop_capabilities(ids); !done) return done.error().detail;
    int signal = 0;
    ::prctl(PR_GET_PDEATHSIG, &signal, 0, 0, 0);
    return signal == SIGKILL ? "" : "the signal is " + std::to_string(signal);
  });
  EXPECT_EQ(child.finish(), "");
}

TEST(ConfineSteps, VerifyNoticesEachMissingStep) {
  Forked child([]() -> std::string {
    if (::geteuid() == 0) {
      auto root = verify_confined();
      if (root || root.error().detail != "confine: the process still has uid 0") return "root passes";
      if (auto done = become(kConfinedIds); !done) return done.error().detail;
    }
    ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    std::string seen;
    seen += verify_confined().error().detail + "\n";
    if (!deny_tracing()) return "deny_tracing";
    seen += verify_confined().error().detail + "\n";
    if (!set_no_new_privileges()) return "no_new_privs";
    seen += verify_confined().error().detail + "\n";
    if (!allow_system_calls(Role::Gate)) return "seccomp";
    return seen + (verify_confined() ? "confined" : "not confined");
  });
  EXPECT_EQ(child.finish(),
            "confine: the process is dumpable\nconfine: the process may gain privileges\n"
            "confine: no system call filter is in force\nconfined");
}

}  // namespace
}  // namespace sallyport::os
