// The pre-flight checks of what this process may ask of the kernel: privileges, uids, system calls, socket
// families, /proc/sys.

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/keyctl.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <vector>

#include "base/fd.h"
#include "base/text.h"
#include "sandbox/preflight.h"

namespace sallyport::sandbox {
namespace {

// Whose owner and right to write tell whether root of the host is near: what is written there runs as root.
constexpr char kCorePattern[] = "/proc/sys/kernel/core_pattern";

constexpr const char* kKernelSwitches[] = {
    kCorePattern,
    "/proc/sys/kernel/modprobe",
    "/proc/sys/kernel/hostname",
    "/proc/sys/kernel/yama/ptrace_scope",
    "/proc/sys/net/ipv4/ip_forward",
    "/proc/sys/net/ipv4/conf/all/forwarding",
    "/proc/sys/vm/overcommit_memory",
    "/proc/sysrq-trigger",
};

struct Family {
  const char* text;
  int family;
  int type;
  int protocol;
};

constexpr Family kRefusedFamilies[] = {
    {"AF_VSOCK", AF_VSOCK, SOCK_STREAM, 0},
    {"AF_PACKET", AF_PACKET, SOCK_RAW, 0},
    {"AF_PACKET by its old name", AF_INET, 10 /*SOCK_PACKET*/, 0},
    {"AF_XDP", 44, SOCK_RAW, 0},
    {"AF_ALG", AF_ALG, SOCK_SEQPACKET, 0},
    {"AF_BLUETOOTH", AF_BLUETOOTH, SOCK_RAW, 1},
    {"AF_KEY", AF_KEY, SOCK_RAW, 2},
    {"AF_CAN", AF_CAN, SOCK_RAW, 1},
    {"AF_NFC", AF_NFC, SOCK_SEQPACKET, 0},
    {"a raw IPv4 socket", AF_INET, SOCK_RAW, IPPROTO_ICMP},
    {"a raw IPv6 socket", AF_INET6, SOCK_RAW, IPPROTO_ICMPV6},
    {"MPTCP", AF_INET, SOCK_STREAM, 262 /*IPPROTO_MPTCP*/},
    {"netlink's audit", AF_NETLINK, SOCK_RAW, 9 /*NETLINK_AUDIT*/},
};

struct Call {
  const char* text;
  long number;
  long first;
  long second;
  int refusal;  // errno by the filter; the arguments are such that the kernel itself would say something else
};

constexpr long kUpperHalf = 0x5a5a5a5a00000000;

constexpr Call kRefusedCalls[] = {
    {"io_uring_setup", SYS_io_uring_setup, 0, 0, EPERM},
    {"userfaultfd", SYS_userfaultfd, -1, 0, EPERM},
    {"bpf", SYS_bpf, -1, 0, EPERM},
    {"keyctl", SYS_keyctl, -1, 0, EPERM},
    {"add_key", SYS_add_key, 0, 0, EPERM},
    {"request_key", SYS_request_key, 0, 0, EPERM},
    {"clone3", SYS_clone3, 0, 0, ENOSYS},
    {"setns", SYS_setns, -1, 0, EPERM},
    {"ptrace of another process", SYS_ptrace, PTRACE_SEIZE, 0, EPERM},
    {"process_vm_readv", SYS_process_vm_readv, 0, 0, EPERM},
    {"a user namespace of its own", SYS_unshare, CLONE_NEWUSER, 0, EPERM},
    {"TIOCSTI", SYS_ioctl, -1, TIOCSTI, EPERM},
    {"TIOCSTI with more bits", SYS_ioctl, -1, kUpperHalf | TIOCSTI, EPERM},
    {"TIOCLINUX", SYS_ioctl, -1, kUpperHalf | TIOCLINUX, EPERM},
    {"AF_VSOCK with more bits", SYS_socket, kUpperHalf | AF_VSOCK, SOCK_STREAM, EAFNOSUPPORT},
};

// The value behind "Name:" in /proc/self/status.
std::string status_value(const std::string& name) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(name + ":")) {
      return std::string(trimmed(std::string_view(line).substr(name.size() + 1)));
    }
  }
  return {};
}

// An image's /etc/group may put a user into any group of the host's.
Leak check_groups() {
  std::vector<gid_t> groups(static_cast<std::size_t>(std::max(0, ::getgroups(0, nullptr))));
  groups.resize(
      static_cast<std::size_t>(std::max(0, ::getgroups(static_cast<int>(groups.size()), groups.data()))));
  for (const gid_t group : groups) {
    if (group == ::getgid()) continue;
    return leak(
        Check::UidMap,
        fmt::format("the image's /etc/group puts uid {} into group {}, which may be one of the host's",
                    ::getuid(), group));
  }
  return std::nullopt;
}

}  // namespace

Leak check_privileges() {
  for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}) {
    const std::string value = status_value(set);
    if (value.empty() || value.find_first_not_of('0') != std::string::npos) {
      return leak(Check::Privileges, fmt::format("there are capabilities: {} is {}", set, escaped(value)));
    }
  }
  if (status_value("NoNewPrivs") != "1") return leak(Check::Privileges, "no_new_privs is not set");
  if (status_value("Seccomp") != "2") return leak(Check::Privileges, "no system call filter is in force");
  return std::nullopt;
}

// /proc/self/uid_map only tells about the namespace next outside, which is bubblewrap's. But a file that
// belongs to the kernel's uid 0 shows its owner as "nobody" exactly when uid 0 has no name in here.
Leak check_uid_map(Users users) {
  if (::getuid() == 0 || ::geteuid() == 0) return leak(Check::UidMap, "the sandbox runs as uid 0");
  if (::getgid() == 0 || ::getegid() == 0) return leak(Check::UidMap, "the sandbox runs as gid 0");
  // Then it is the bounding set, which was found empty, that keeps everyone from becoming root.
  if (users == Users::Hosts) return check_groups();
  std::ifstream file("/proc/sys/kernel/overflowuid");
  std::string line;
  std::getline(file, line);
  const auto nobody = parse_decimal(line, UINT32_MAX);
  struct stat status{};
  if (!nobody || ::stat(kCorePattern, &status) != 0) {
    return leak(Check::UidMap, "cannot tell whom the host's root is in here");
  }
  if (status.st_uid != *nobody) {
    return leak(Check::UidMap, fmt::format("the host's root is uid {} in the sandbox", status.st_uid));
  }
  return std::nullopt;
}

Leak check_system_calls() {
  for (const Call& call : kRefusedCalls) {
    errno = 0;
    const long result = ::syscall(call.number, call.first, call.second, 0L, 0L, 0L, 0L);
    if (result == -1 && errno == call.refusal) continue;
    return leak(Check::SystemCalls, fmt::format("{} is not refused ({})", call.text,
                                                result == -1 ? errno_text(errno) : "it worked"));
  }
  return std::nullopt;
}

Leak check_socket_families() {
  for (const Family& family : kRefusedFamilies) {
    const Fd socket(::socket(family.family, family.type | SOCK_CLOEXEC, family.protocol));
    if (socket) return leak(Check::SocketFamilies, fmt::format("{} can be had", family.text));
  }
  return std::nullopt;
}

Leak check_proc_sys() {
  struct statvfs mounted{};
  if (::statvfs("/proc/sys", &mounted) != 0 || (mounted.f_flag & ST_RDONLY) == 0) {
    return leak(Check::ProcSys, "/proc/sys is not mounted read-only");
  }
  for (const char* path : kKernelSwitches) {
    const Fd file(::open(path, O_WRONLY | O_CLOEXEC));
    if (file) return leak(Check::ProcSys, fmt::format("{} can be opened for writing", path));
  }
  return std::nullopt;
}

}  // namespace sallyport::sandbox
