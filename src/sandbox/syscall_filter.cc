#include "sandbox/syscall_filter.h"

#include <linux/netlink.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <string>

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

// Terminal requests that put text into the terminal's input.
constexpr unsigned long kTerminalInput[] = {TIOCSTI, TIOCLINUX};

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
    // Mounts, namespaces, files by handle.
    "mount",
    "umount2",
    "pivot_root",
    "chroot",
    "move_mount",
    "open_tree",
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
    "modify_ldt",
};

class Filter {
 public:
  Filter() : context_(::seccomp_init(SCMP_ACT_ALLOW)) {
    // 32-bit and x32 calls have other numbers, which no rule here would match.
    note(::seccomp_attr_set(context_, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS));
  }
  Filter(const Filter&) = delete;
  Filter& operator=(const Filter&) = delete;
  ~Filter() {
    if (context_ != nullptr) ::seccomp_release(context_);
  }

  template <class... Arguments>
  void refuse(const char* call, int error, Arguments... arguments) {
    const int number = ::seccomp_syscall_resolve_name(call);
    // Not on this architecture, or not known to this libseccomp.
    if (number < 0) return;
    const scmp_arg_cmp compared[] = {arguments..., scmp_arg_cmp{}};
    note(::seccomp_rule_add_array(context_, SCMP_ACT_ERRNO(static_cast<unsigned>(error)), number,
                                  sizeof...(arguments), compared));
  }

  Result<Fd> write() {
    if (context_ == nullptr || error_ != 0) return fail(Reason::Internal, "seccomp: " + errno_text(-error_));
    Fd file(::memfd_create("seccomp", MFD_CLOEXEC));
    if (!file) return fail_errno(Reason::Internal, "memfd_create");
    if (const int error = ::seccomp_export_bpf(context_, file.get()); error != 0) {
      return fail(Reason::Internal, "seccomp: " + errno_text(-error));
    }
    if (::lseek(file.get(), 0, SEEK_SET) != 0) return fail_errno(Reason::Internal, "lseek");
    return file;
  }

 private:
  void note(int result) {
    if (result != 0 && error_ == 0) error_ = result;
  }
  scmp_filter_ctx context_;
  int error_ = 0;  // the first
};

scmp_arg_cmp equals(unsigned argument, scmp_datum_t value) {
  return {argument, SCMP_CMP_MASKED_EQ, kLow32, value};
}

scmp_arg_cmp has_bits(unsigned argument, scmp_datum_t bits) {
  return {argument, SCMP_CMP_MASKED_EQ, bits, bits};
}

void refuse_sockets(Filter& filter) {
  for (const char* call : {"socket", "socketpair"}) {
    for (int family = 0; family < kFamilies; ++family) {
      if (std::ranges::find(kAllowedFamilies, family) != std::end(kAllowedFamilies)) continue;
      filter.refuse(call, EAFNOSUPPORT, equals(0, static_cast<scmp_datum_t>(family)));
    }
    for (const int protocol : kRefusedProtocols) {
      filter.refuse(call, EPROTONOSUPPORT, equals(2, static_cast<scmp_datum_t>(protocol)));
    }
    // The kind stands in the low four bits, flags above. AF_NETLINK's SOCK_RAW is everyday, so by family.
    constexpr scmp_datum_t kKind = 0xf;
    for (const int family : {AF_INET, AF_INET6}) {
      for (const int kind : {static_cast<int>(SOCK_RAW), kSockPacket}) {
        filter.refuse(call, EPERM, equals(0, static_cast<scmp_datum_t>(family)),
                      scmp_arg_cmp{1, SCMP_CMP_MASKED_EQ, kKind, static_cast<scmp_datum_t>(kind)});
      }
    }
    // Of netlink only routing, which getaddrinfo() and `ip` ask.
    for (int protocol = 0; protocol < MAX_LINKS; ++protocol) {
      if (protocol == NETLINK_ROUTE) continue;
      filter.refuse(call, EPROTONOSUPPORT, equals(0, AF_NETLINK),
                    equals(2, static_cast<scmp_datum_t>(protocol)));
    }
  }
}

}  // namespace

Result<Fd> syscall_filter() {
  Filter filter;
  for (const char* call : kRefusedCalls) filter.refuse(call, EPERM);
  refuse_sockets(filter);

  // A debugger that starts its program (PTRACE_TRACEME) works; reaching into another process does not.
  filter.refuse("ptrace", EPERM, equals(0, PTRACE_ATTACH));
  filter.refuse("ptrace", EPERM, equals(0, PTRACE_SEIZE));

  // A new user namespace brings every capability with it, inside. clone3() hides its flags behind a pointer;
  // ENOSYS makes the C library use clone().
  filter.refuse("unshare", EPERM, has_bits(0, CLONE_NEWUSER));
  filter.refuse("clone", EPERM, has_bits(0, CLONE_NEWUSER));
  filter.refuse("clone3", ENOSYS);

  for (const unsigned long request : kTerminalInput) filter.refuse("ioctl", EPERM, equals(1, request));

  // Only the question which one is in force (0xffffffff).
  filter.refuse("personality", EPERM, scmp_arg_cmp{0, SCMP_CMP_NE, kLow32, 0});
  return filter.write();
}

}  // namespace sallyport::sandbox
