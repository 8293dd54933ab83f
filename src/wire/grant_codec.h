// A Grant as bytes, from the warden to the gate and the vault (in a sealed memfd: a rule set or the
// certificates of private authorities may be larger than a packet). Decoding parses every name and pattern
// again, so that the types keep their proof.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"
#include "policy/grant.h"

namespace sallyport::wire {

// The largest encoded grant: thousands of rules, and a private bundle of certificates for dozens of hosts.
inline constexpr std::size_t kMaxGrantBytes = 16UL * 1024 * 1024;
inline constexpr std::size_t kMaxGrantRules = 10'000;
inline constexpr std::size_t kMaxGrantHosts = 20'000;  // of rules, and of the operator's file

std::string encode_grant(const policy::Grant& grant);
// Refuses everything that encode_grant() would not have written, and rules whose host has no entry.
Result<policy::Grant> decode_grant(std::string_view bytes);
// From the sealed memory file in which it travels.
Result<policy::Grant> read_grant(const Fd& file);

}  // namespace sallyport::wire
