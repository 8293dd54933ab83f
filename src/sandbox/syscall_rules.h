// What the system call filter refuses (docs/sandbox.md lists it with reasons), as plain data: bubblewrap's
// filter (syscall_filter.h) and the engines' profile (seccomp_profile.h) are made of it, so that they cannot
// differ. It is no allow-list: any program may run in a sandbox, and what keeps it in are the namespaces; the
// rules close the families and calls that namespaces do not cover, and cut the kernel's surface.
#pragma once

#include <seccomp.h>

#include <vector>

namespace sallyport::sandbox {

struct SyscallRule {
  std::vector<const char*>
      calls;  // by name; one that an architecture or a libseccomp lacks has no rule there
  int error;  // errno of the refusal
  std::vector<scmp_arg_cmp> arguments;  // all of them must match; each compares another argument
};

std::vector<SyscallRule> syscall_rules();

}  // namespace sallyport::sandbox
