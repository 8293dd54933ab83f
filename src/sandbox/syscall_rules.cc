#include "sandbox/syscall_rules.h"

#include <linux/netlink.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

namespace sallyport::sandbox {
namespace {

// The kernel takes int arguments from the low half of a register, so only that half may be compared: with
// garbage in the upper half a comparison of all 64 bits would miss.
constexpr scmp_datum_t kLow32 = 0xffffffff;

constexpr int kAllowedFamilies[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};
constexpr int kFamilies = 64;  // the kernel knows 46, and refuses what it does not know itself

// IPPROTO_ of what would load a kernel module or leave the paths that the rules look at.
constexpr int kRefusedProtocols[] = {33 /*DCCP*/, 115 /*L2TP*/, 132 /*SCTP*/, 136 /*UDP-Lite*/,
                                     262 /*MPTCP*/};
constexpr int kSockPacket = 10;  // the old name of AF_PACKET: socket(AF_INET, SOCK_PACKET, ...)
// Sockets that ping without a capability, by family: Docker opens net.ipv4.ping_group_range to everybody.
constexpr std::pair<int, int> kPings[] = {{AF_INET, 1 /*ICMP*/}, {AF_INET6, 58 /*ICMPv6*/}};

// Terminal requests: the first two put text into the terminal's input, the last loads line disciplines.
constexpr unsigned long kTerminalRequests[] = {TIOCSTI, TIOCLINUX, TIOCSETD};

// A new user namespace brings every capability with it, inside. The others need a capability, which nobody in
// a sandbox has; should one come by it nevertheless, there is no new mount or network namespace for it.
constexpr unsigned kNamespaces[] = {CLONE_NEWUSER, CLONE_NEWNS,  CLONE_NEWNET,   CLONE_NEWPID,
                                    CLONE_NEWIPC,  CLONE_NEWUTS, CLONE_NEWCGROUP};
constexpr unsigned kNewTime = 0x80;  // CLONE_NEWTIME; for clone() these bits are the signal at its end

constexpr const char* kRefusedCalls[] = {
    // Ways around this filter or far larger kernel surface than any workload needs.
    "io_uring_setup",
    "io_uring_enter",
    "io_uring_register",
    "userfaultfd",
    "bpf",
    "perf_event_open",
    // Key rings are not namespaced: they are the user's, outside too.
    "keyctl",
    "add_key",
    "request_key",
    // Other processes' memory and descriptors.
    "process_vm_readv",
    "process_vm_writev",
    "pidfd_getfd",
    "kcmp",
    "process_madvise",
    // Where memory lies on the machine's nodes, and moving it: the host's affair.
    "move_pages",
    "migrate_pages",
    "mbind",
    "get_mempolicy",
    "set_mempolicy",
    "set_mempolicy_home_node",
    // Mounts, namespaces, files by handle.
    "mount",
    "umount2",
    "pivot_root",
    "chroot",
    "move_mount",
    "open_tree",
    "open_tree_attr",
    "fsopen",
    "fsconfig",
    "fsmount",
    "fspick",
    "mount_setattr",
    "setns",
    "open_by_handle_at",
    "name_to_handle_at",
    "fanotify_init",
    // The machine.
    "kexec_load",
    "kexec_file_load",
    "init_module",
    "finit_module",
    "delete_module",
    "swapon",
    "swapoff",
    "reboot",
    "acct",
    "quotactl",
    "quotactl_fd",
    "syslog",
    "vhangup",
    "iopl",
    "ioperm",
    "settimeofday",
    "clock_settime",
    "sethostname",
    "setdomainname",
    "nfsservctl",
    "uselib",
    "lookup_dcookie",
    "sysfs",
    "ustat",  // tells of the host's file systems by the number of their device
    "modify_ldt",
};

scmp_arg_cmp equals(unsigned argument, scmp_datum_t value) {
  return {argument, SCMP_CMP_MASKED_EQ, kLow32, value};
}

scmp_arg_cmp has_bits(unsigned argument, scmp_datum_t bits) {
  return {argument, SCMP_CMP_MASKED_EQ, bits, bits};
}

scmp_arg_cmp equals(unsigned argument, int value) {
  return equals(argument, static_cast<scmp_datum_t>(value));
}

void add_sockets(std::vector<SyscallRule>& rules) {
  const auto refuse = [&rules](int error, std::vector<scmp_arg_cmp> arguments) {
    rules.push_back({{"socket", "socketpair"}, error, std::move(arguments)});
  };
  for (int family = 0; family < kFamilies; ++family) {
    if (std::ranges::find(kAllowedFamilies, family) != std::end(kAllowedFamilies)) continue;
    refuse(EAFNOSUPPORT, {equals(0, family)});
  }
  for (const int protocol : kRefusedProtocols) refuse(EPROTONOSUPPORT, {equals(2, protocol)});
  // The kind stands in the low four bits, flags above. AF_NETLINK's SOCK_RAW is everyday, so by family.
  constexpr scmp_datum_t kKind = 0xf;
  for (const int family : {AF_INET, AF_INET6}) {
    for (const int kind : {static_cast<int>(SOCK_RAW), kSockPacket}) {
      refuse(EPERM, {equals(0, family), {1, SCMP_CMP_MASKED_EQ, kKind, static_cast<scmp_datum_t>(kind)}});
    }
  }
  for (const auto& [family, protocol] : kPings) refuse(EPERM, {equals(0, family), equals(2, protocol)});
  // Of netlink only routing, which getaddrinfo() and `ip` ask.
  for (int protocol = 0; protocol < MAX_LINKS; ++protocol) {
    if (protocol == NETLINK_ROUTE) continue;
    refuse(EPROTONOSUPPORT, {equals(0, AF_NETLINK), equals(2, protocol)});
  }
}

}  // namespace

std::vector<SyscallRule> syscall_rules() {
  std::vector<SyscallRule> rules{{{std::begin(kRefusedCalls), std::end(kRefusedCalls)}, EPERM, {}}};
  add_sockets(rules);

  // A debugger that starts its program (PTRACE_TRACEME) works; reaching into another process does not.
  rules.push_back({{"ptrace"}, EPERM, {equals(0, PTRACE_ATTACH)}});
  rules.push_back({{"ptrace"}, EPERM, {equals(0, PTRACE_SEIZE)}});

  // clone3() hides its flags behind a pointer; ENOSYS makes the C library use clone().
  for (const unsigned flag : kNamespaces) rules.push_back({{"unshare", "clone"}, EPERM, {has_bits(0, flag)}});
  rules.push_back({{"unshare"}, EPERM, {has_bits(0, kNewTime)}});
  rules.push_back({{"clone3"}, ENOSYS, {}});

  for (const unsigned long request : kTerminalRequests) {
    rules.push_back({{"ioctl"}, EPERM, {equals(1, request)}});
  }

  // Only the question which one is in force (0xffffffff).
  rules.push_back({{"personality"}, EPERM, {{0, SCMP_CMP_NE, kLow32, 0}}});
  return rules;
}

}  // namespace sallyport::sandbox
