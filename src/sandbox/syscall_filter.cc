#include "sandbox/syscall_filter.h"

#include <seccomp.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "sandbox/syscall_rules.h"

namespace sallyport::sandbox {
namespace {

struct Release {
  void operator()(void* context) const { ::seccomp_release(context); }
};
using Context = std::unique_ptr<void, Release>;

int add(const Context& context, const SyscallRule& rule) {
  for (const char* call : rule.calls) {
    const int number = ::seccomp_syscall_resolve_name(call);
    // Not on this architecture, or not known to this libseccomp.
    if (number < 0) continue;
    const int error =
        ::seccomp_rule_add_array(context.get(), SCMP_ACT_ERRNO(static_cast<unsigned>(rule.error)), number,
                                 static_cast<unsigned>(rule.arguments.size()), rule.arguments.data());
    if (error != 0) return error;
  }
  return 0;
}

std::unexpected<Error> fail_seccomp(int error) {
  return fail(Reason::Internal, "seccomp: " + errno_text(-error));
}

}  // namespace

Result<Fd> syscall_filter() {
  const Context context(::seccomp_init(SCMP_ACT_ALLOW));
  if (!context) return fail_seccomp(-ENOMEM);
  // 32-bit and x32 calls have other numbers, which no rule would match.
  int error = ::seccomp_attr_set(context.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
  if (error != 0) return fail_seccomp(error);
  for (const SyscallRule& rule : syscall_rules()) {
    error = add(context, rule);
    if (error != 0) return fail_seccomp(error);
  }
  Fd file(::memfd_create("seccomp", MFD_CLOEXEC));
  if (!file) return fail_errno(Reason::Internal, "memfd_create");
  error = ::seccomp_export_bpf(context.get(), file.get());
  if (error != 0) return fail_seccomp(error);
  if (::lseek(file.get(), 0, SEEK_SET) != 0) return fail_errno(Reason::Internal, "lseek");
  return file;
}

}  // namespace sallyport::sandbox
