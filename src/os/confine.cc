#include "os/confine.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "base/fd.h"
#include "os/landlock.h"
#include "os/seccomp_filter.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/lsan_interface.h>
#define SALLYPORT_LEAK_CHECK 1
#endif
#if __has_feature(thread_sanitizer)
#define SALLYPORT_BACKGROUND_THREAD 1
#endif
#endif

namespace sallyport::os {

namespace {

struct Capabilities {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2]{};
};

bool has_capability(unsigned capability) {
  Capabilities own;
  if (::syscall(SYS_capget, &own.header, own.data) != 0) return false;
  return ((own.data[capability / 32].effective >> (capability % 32)) & 1U) != 0;
}

// Landlock and the ids' proofs hold for a thread; another one would stay outside the wall.
Status require_single_thread() {
#ifdef SALLYPORT_BACKGROUND_THREAD
  return {};  // ThreadSanitizer has a thread of its own
#else
  const std::unique_ptr<DIR, int (*)(DIR*)> tasks(::opendir("/proc/self/task"), ::closedir);
  if (!tasks) return fail_errno(Reason::Internal, "confine: open /proc/self/task");
  int threads = 0;
  while (const dirent* entry = ::readdir(tasks.get())) {
    if (entry->d_name[0] != '.') ++threads;
  }
  if (threads != 1) {
    return fail(Reason::Internal, "confine: the process has " + std::to_string(threads) + " threads, not 1");
  }
  return {};
#endif
}

// LeakSanitizer starts a process that traces this one: now, or never.
void check_leaks_while_possible() {
#ifdef SALLYPORT_LEAK_CHECK
  __lsan_do_leak_check();
#endif
}

Status drop_bounding_set() {
  // Without CAP_SETPCAP the set cannot shrink, and without any capability it cannot be used:
  // no_new_privileges keeps programs from granting one.
  if (!has_capability(CAP_SETPCAP)) return {};
  for (int capability = 0; ::prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; ++capability) {
    if (::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0) {
      return fail_errno(Reason::Internal, "prctl PR_CAPBSET_DROP");
    }
  }
  return {};
}

// The kernel forgets the parent-death signal when ids change.
Status become_and_stay_tied(const Ids& ids) {
  int signal = 0;
  const pid_t parent = ::getppid();
  if (::prctl(PR_GET_PDEATHSIG, &signal, 0, 0, 0) != 0) {
    return fail_errno(Reason::Internal, "prctl PR_GET_PDEATHSIG");
  }
  if (auto done = become(ids); !done) return done;
  return signal == 0 ? Status() : set_parent_death_signal(signal, parent);
}

}  // namespace

Status apply(const Confinement& confinement) {
  check_leaks_while_possible();
  if (auto done = require_single_thread(); !done) return done;
  if (auto done = deny_tracing(); !done) return done;
  if (auto done = drop_capabilities(confinement.become); !done) return done;
  if (auto done = deny_tracing(); !done) return done;
  if (auto done = set_no_new_privileges(); !done) return done;
  if (auto done = leave_file_system(); !done) return done;
  if (auto done = allow_system_calls(confinement.role); !done) return done;
  return verify_confined();
}

Status deny_tracing() {
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return fail_errno(Reason::Internal, "prctl PR_SET_DUMPABLE");
  const rlimit none{0, 0};
  if (::setrlimit(RLIMIT_CORE, &none) != 0) return fail_errno(Reason::Internal, "setrlimit RLIMIT_CORE");
  return {};
}

Status drop_capabilities(const std::optional<Ids>& become_ids) {
  if (auto done = drop_bounding_set(); !done) return done;
  if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0) {
    return fail_errno(Reason::Internal, "prctl PR_CAP_AMBIENT_CLEAR_ALL");
  }
  if (become_ids) {
    if (auto done = become_and_stay_tied(*become_ids); !done) return done;
  }
  if (::getuid() == 0 || ::geteuid() == 0) {
    return fail(Reason::Internal, "confine: the gate and the vault never run as root; name a uid to become");
  }
  Capabilities none;
  if (::syscall(SYS_capset, &none.header, none.data) != 0) return fail_errno(Reason::Internal, "capset");
  return {};
}

Status set_no_new_privileges() {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return fail_errno(Reason::Internal, "prctl PR_SET_NO_NEW_PRIVS");
  }
  return {};
}

Status leave_file_system() {
  const long abi = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, landlock::kCreateRulesetVersion);
  if (abi < 1) {
    return fail_errno(Reason::Internal,
                      "Landlock is not available; the kernel must have CONFIG_SECURITY_LANDLOCK, and "
                      "\"landlock\" among the names of its lsm= boot parameter");
  }
  landlock::RulesetAttributes attributes{};
  attributes.handled_file_access = landlock::all_file_access(static_cast<int>(abi));
  if (abi >= 4) attributes.handled_net_access = landlock::kNetBindTcp;
  if (abi >= 6) attributes.scoped = landlock::kScopeAbstractUnixSocket | landlock::kScopeSignal;
  // No rule is added: what is handled and not allowed is refused.
  const Fd ruleset(
      static_cast<int>(::syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0U)));
  if (!ruleset) return fail_errno(Reason::Internal, "landlock_create_ruleset");
  if (::syscall(SYS_landlock_restrict_self, ruleset.get(), 0U) != 0) {
    return fail_errno(Reason::Internal, "landlock_restrict_self");
  }
  // Landlock cannot be asked later, when the filter answers first: so the proof is here.
  const Fd root(::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (root) return fail(Reason::Internal, "Landlock is in force, and \"/\" can still be opened");
  return {};
}

Status allow_system_calls(Role role) {
  return load_seccomp_filter(role);
}

Status verify_confined() {
  uid_t ids[3] = {};
  if (::getresuid(&ids[0], &ids[1], &ids[2]) != 0 || std::ranges::count(ids, uid_t{0}) != 0) {
    return fail(Reason::Internal, "confine: the process still has uid 0");
  }
  Capabilities own;
  if (::syscall(SYS_capget, &own.header, own.data) != 0) return fail_errno(Reason::Internal, "capget");
  for (const auto& half : own.data) {
    if ((half.effective | half.permitted | half.inheritable) != 0) {
      return fail(Reason::Internal, "confine: the process still has capabilities");
    }
  }
  if (::prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0) {
    return fail(Reason::Internal, "confine: the process is dumpable");
  }
  if (::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1) {
    return fail(Reason::Internal, "confine: the process may gain privileges");
  }
  if (::prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != 2) {
    return fail(Reason::Internal, "confine: no system call filter is in force");
  }
  return {};
}

}  // namespace sallyport::os
