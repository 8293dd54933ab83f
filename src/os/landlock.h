// Landlock's kernel interface, as far as confine.cc needs it. Debian 12's <linux/landlock.h> ends at ABI 3;
// the numbers here are the kernel's own up to ABI 7.
#pragma once

#include <cstdint>

namespace sallyport::os::landlock {

struct RulesetAttributes {
  std::uint64_t handled_file_access;
  std::uint64_t handled_net_access;  // ABI 4
  std::uint64_t scoped;              // ABI 6
};

inline constexpr unsigned kCreateRulesetVersion = 1U << 0;
inline constexpr std::uint64_t kNetBindTcp = 1ULL << 0;
inline constexpr std::uint64_t kScopeAbstractUnixSocket = 1ULL << 0;
inline constexpr std::uint64_t kScopeSignal = 1ULL << 1;

// Every right on files that a kernel of that ABI knows: ABI 1 has 13, 2 adds REFER, 3 TRUNCATE, 5 IOCTL_DEV.
constexpr std::uint64_t all_file_access(int abi) {
  int rights = 13;
  if (abi >= 2) rights = 14;
  if (abi >= 3) rights = 15;
  if (abi >= 5) rights = 16;
  return (1ULL << rights) - 1;
}

}  // namespace sallyport::os::landlock
