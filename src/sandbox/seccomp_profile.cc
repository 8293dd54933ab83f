#include "sandbox/seccomp_profile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sandbox/syscall_rules.h"

namespace sallyport::sandbox {
namespace {

std::string argument_object(const scmp_arg_cmp& argument) {
  // Docker leaves them in libseccomp's order: of a masked comparison `value` is the mask.
  return fmt::format(R"({{"index":{},"value":{},"valueTwo":{},"op":"{}"}})", argument.arg, argument.datum_a,
                     argument.datum_b, argument.op == SCMP_CMP_NE ? "SCMP_CMP_NE" : "SCMP_CMP_MASKED_EQ");
}

// Names and numbers alone, so nothing needs escaping. Engines take an entry's arguments as "all of them", as
// libseccomp does, as long as no two compare the same one.
std::string entry(const SyscallRule& rule) {
  std::vector<std::string> arguments;
  for (const scmp_arg_cmp& argument : rule.arguments) arguments.push_back(argument_object(argument));
  return fmt::format(R"({{"names":["{}"],"action":"SCMP_ACT_ERRNO","errnoRet":{}{}}})",
                     fmt::join(rule.calls, R"(",")"), rule.error,
                     arguments.empty() ? "" : fmt::format(R"(,"args":[{}])", fmt::join(arguments, ",")));
}

}  // namespace

// One file serves both architectures: an engine adds the rules of each, and the kernel's word which one a
// call came by chooses between them. On either machine the other's calls cannot be made. What is not named is
// not to be had: 32-bit x86 and ARM and x32 are answered by libseccomp's own "bad architecture", which kills.
std::string seccomp_profile() {
  std::vector<std::string> entries;
  for (const SyscallRule& rule : syscall_rules()) entries.push_back("    " + entry(rule));
  return fmt::format(R"({{
  "defaultAction": "SCMP_ACT_ALLOW",
  "architectures": ["SCMP_ARCH_X86_64", "SCMP_ARCH_AARCH64"],
  "syscalls": [
{}
  ]
}}
)",
                     fmt::join(entries, ",\n"));
}

}  // namespace sallyport::sandbox
