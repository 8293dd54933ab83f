#include "os/seccomp_filter.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

namespace sallyport::os {

namespace {

// Allowed with any arguments: they act on descriptors that the process holds, on its own memory, or on
// nothing.
constexpr int kPlainCalls[] = {
    // descriptors
    SCMP_SYS(read), SCMP_SYS(write), SCMP_SYS(readv), SCMP_SYS(writev), SCMP_SYS(pread64), SCMP_SYS(close),
    SCMP_SYS(lseek), SCMP_SYS(fstat),
    // sockets
    SCMP_SYS(connect), SCMP_SYS(accept), SCMP_SYS(accept4), SCMP_SYS(sendto), SCMP_SYS(recvfrom),
    SCMP_SYS(sendmsg), SCMP_SYS(recvmsg), SCMP_SYS(sendmmsg), SCMP_SYS(recvmmsg), SCMP_SYS(shutdown),
    SCMP_SYS(getsockopt), SCMP_SYS(getsockname), SCMP_SYS(getpeername),
    // waiting
    SCMP_SYS(epoll_create1), SCMP_SYS(epoll_ctl), SCMP_SYS(epoll_wait), SCMP_SYS(epoll_pwait),
    SCMP_SYS(epoll_pwait2), SCMP_SYS(poll), SCMP_SYS(ppoll), SCMP_SYS(eventfd2), SCMP_SYS(timerfd_create),
    SCMP_SYS(timerfd_settime), SCMP_SYS(timerfd_gettime), SCMP_SYS(pipe), SCMP_SYS(pipe2),
    SCMP_SYS(nanosleep), SCMP_SYS(clock_nanosleep), SCMP_SYS(futex), SCMP_SYS(sched_yield),
    SCMP_SYS(restart_syscall),
    // memory; mapping and protecting are below
    SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(madvise), SCMP_SYS(brk), SCMP_SYS(mlock), SCMP_SYS(munlock),
    // time, chance, self
    SCMP_SYS(clock_gettime), SCMP_SYS(clock_getres), SCMP_SYS(gettimeofday), SCMP_SYS(time),
    SCMP_SYS(getrandom), SCMP_SYS(getpid), SCMP_SYS(gettid), SCMP_SYS(getppid), SCMP_SYS(getuid),
    SCMP_SYS(geteuid), SCMP_SYS(getgid), SCMP_SYS(getegid), SCMP_SYS(getresuid), SCMP_SYS(getresgid),
    SCMP_SYS(capget), SCMP_SYS(sched_getaffinity), SCMP_SYS(uname), SCMP_SYS(sysinfo), SCMP_SYS(getrusage),
    SCMP_SYS(rseq), SCMP_SYS(set_robust_list),
    // signals to itself, and the end
    SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn), SCMP_SYS(sigaltstack),
    SCMP_SYS(exit), SCMP_SYS(exit_group)};

// The gate moves tunnels' bytes without looking at them.
constexpr int kGateCalls[] = {SCMP_SYS(splice)};

// Finding files by name. Landlock has closed them already; these answers are for libraries.
constexpr int kFileCalls[] = {SCMP_SYS(open),     SCMP_SYS(openat),     SCMP_SYS(openat2),
                              SCMP_SYS(stat),     SCMP_SYS(lstat),      SCMP_SYS(statx),
                              SCMP_SYS(access),   SCMP_SYS(faccessat),  SCMP_SYS(faccessat2),
                              SCMP_SYS(readlink), SCMP_SYS(readlinkat), SCMP_SYS(newfstatat)};

// What may be done with a descriptor's flags, and the question whether it is sealed. Not F_SETOWN and its
// kin: they have signals sent to others.
constexpr int kFcntlCommands[] = {F_GETFD,         F_SETFD,      F_GETFL,      F_SETFL,    F_DUPFD,
                                  F_DUPFD_CLOEXEC, F_GETPIPE_SZ, F_SETPIPE_SZ, F_GET_SEALS};
constexpr unsigned long kIoctlRequests[] = {FIONBIO, FIONREAD};
constexpr int kSocketOptionLevels[] = {SOL_SOCKET, IPPROTO_TCP, IPPROTO_IP, IPPROTO_IPV6};
constexpr int kPrctlQuestions[] = {PR_GET_DUMPABLE, PR_GET_NO_NEW_PRIVS, PR_GET_SECCOMP};

struct Release {
  void operator()(void* filter) const { ::seccomp_release(filter); }
};

// Adds rules until one fails, and remembers that one's error: the list reads as a list.
class Filter {
 public:
  Filter() : filter_(::seccomp_init(SCMP_ACT_ERRNO(EPERM))) {
    if (!filter_) {
      error_ = ENOMEM;
      return;
    }
    set(SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    set(SCMP_FLTATR_CTL_TSYNC, 1);
  }

  void allow(int call, std::initializer_list<scmp_arg_cmp> arguments = {}) {
    add(SCMP_ACT_ALLOW, call, arguments);
  }
  void allow(std::span<const int> calls) {
    for (const int call : calls) allow(call);
  }
  void answer(std::span<const int> calls, int error) {
    for (const int call : calls) add(SCMP_ACT_ERRNO(static_cast<unsigned>(error)), call, {});
  }
  // 0, or a negative errno.
  int load() {
    if (error_ == 0) error_ = ::seccomp_load(filter_.get());
    return error_;
  }

 private:
  void set(scmp_filter_attr attribute, std::uint32_t value) {
    if (error_ == 0) error_ = ::seccomp_attr_set(filter_.get(), attribute, value);
  }
  void add(std::uint32_t action, int call, std::initializer_list<scmp_arg_cmp> arguments) {
    if (error_ != 0) return;
    error_ = ::seccomp_rule_add_array(filter_.get(), action, call, static_cast<unsigned>(arguments.size()),
                                      arguments.begin());
  }

  std::unique_ptr<void, Release> filter_;
  int error_ = 0;
};

scmp_arg_cmp equals(unsigned argument, std::uint64_t value) {
  return {argument, SCMP_CMP_EQ, value, 0};
}
// The bits under `mask` equal `value`.
scmp_arg_cmp bits(unsigned argument, std::uint64_t mask, std::uint64_t value) {
  return {argument, SCMP_CMP_MASKED_EQ, mask, value};
}
template <class Number>
std::uint64_t word(Number value) {
  return static_cast<std::uint64_t>(value);
}

// TCP and UDP only; MPTCP, raw, ping, SCTP, netlink, vsock and packet sockets are not. No Unix socket either,
// and of pairs only connected ones that can never be pointed elsewhere (a datagram one can): Landlock does
// not keep a process from connecting to a path.
void allow_sockets(Filter& filter) {
  const std::uint64_t kind = ~word(SOCK_NONBLOCK | SOCK_CLOEXEC);
  for (const int family : {AF_INET, AF_INET6}) {
    for (const int protocol : {0, int{IPPROTO_TCP}}) {
      filter.allow(SCMP_SYS(socket),
                   {equals(0, word(family)), bits(1, kind, SOCK_STREAM), equals(2, word(protocol))});
    }
    for (const int protocol : {0, int{IPPROTO_UDP}}) {
      filter.allow(SCMP_SYS(socket),
                   {equals(0, word(family)), bits(1, kind, SOCK_DGRAM), equals(2, word(protocol))});
    }
  }
  for (const int type : {int{SOCK_STREAM}, int{SOCK_SEQPACKET}}) {
    filter.allow(SCMP_SYS(socketpair), {equals(0, AF_UNIX), bits(1, kind, word(type))});
  }
  for (const int level : kSocketOptionLevels) {
    filter.allow(SCMP_SYS(setsockopt), {equals(1, word(level))});
  }
}

void allow_with_arguments(Filter& filter) {
  // No memory that was data becomes code.
  for (const int call : {SCMP_SYS(mmap), SCMP_SYS(mprotect)}) filter.allow(call, {bits(2, PROT_EXEC, 0)});
  for (const int command : kFcntlCommands) filter.allow(SCMP_SYS(fcntl), {equals(1, word(command))});
  for (const unsigned long request : kIoctlRequests) filter.allow(SCMP_SYS(ioctl), {equals(1, request)});
  for (const int question : kPrctlQuestions) filter.allow(SCMP_SYS(prctl), {equals(0, word(question))});
  // abort() signals its own thread.
  filter.allow(SCMP_SYS(tgkill), {equals(0, word(::getpid()))});
  // Asking for one's own limits, not setting them.
  filter.allow(SCMP_SYS(prlimit64), {equals(0, 0), equals(2, 0)});
}

}  // namespace

Status load_seccomp_filter(Role role) {
  Filter filter;
  filter.allow(kPlainCalls);
  switch (role) {
    case Role::Gate:
      filter.allow(kGateCalls);
      break;
    case Role::Vault:
      break;
  }
  filter.answer(kFileCalls, ENOENT);
  allow_sockets(filter);
  allow_with_arguments(filter);
  if (const int error = filter.load(); error != 0) {
    return fail(Reason::Internal, "seccomp: " + errno_text(error < 0 ? -error : error) +
                                      "; the kernel must have CONFIG_SECCOMP_FILTER");
  }
  return {};
}

}  // namespace sallyport::os
