// The embedded runtime: bubblewrap, nested in the namespaces that sallyport-netns made. It makes its own user
// namespace below ours, so no capability over the network namespace can be regained inside, and forbids
// further ones.
#pragma once

#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "sandbox/runtime.h"

namespace sallyport::sandbox {

inline constexpr char kBubblewrap[] = "/usr/bin/bwrap";

// How bwrap is called: its arguments, and the descriptors that these name by number.
struct BubblewrapCall {
  std::vector<std::string> argv;
  std::vector<os::DescriptorMap> descriptors;
  std::vector<Fd> owned;  // memory files that `descriptors` refers to
};

Result<BubblewrapCall> bubblewrap_call(const SandboxSpec& spec);
// How bwrap itself is started: dropped to the sandbox's ids first, then inside the namespaces.
os::SpawnSpec spawn_spec(const SandboxSpec& spec, const BubblewrapCall& call);

class Bubblewrap final : public Runtime {
 public:
  Result<os::Child> start(const SandboxSpec& spec) override;
};

}  // namespace sallyport::sandbox
