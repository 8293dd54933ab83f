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

// One command sealed off from everything: no network at all, no file but the system's and what is named, no
// capability, our filter for system calls. For git that reads what a sandbox has written; it needs no
// namespaces made before, no init and no doors, since nothing has to come out but its standard output.
struct SealedSpec {
  os::Ids ids;                    // whom it runs as; never uid 0
  std::optional<os::Ids> become;  // = ids when the caller is root
  Profile profile;
  std::vector<Mount> mounts;
  std::array<int, 3> stdio{0, 1, 2};
  std::vector<std::string> argv;
  std::vector<std::string> environment;  // NAME=VALUE, the whole of it
};
// The child leads a session and process group of its own, dies with the calling thread, and takes all that it
// started with it.
Result<os::Child> start_sealed(const SealedSpec& spec);

class Bubblewrap final : public Runtime {
 public:
  Result<os::Child> start(const SandboxSpec& spec) override;
};

}  // namespace sallyport::sandbox
