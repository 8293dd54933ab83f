// The embedded runtime: bubblewrap, nested in the namespaces that sallyport-netns made. It makes its own user
// namespace below ours, so no capability over the network namespace can be regained inside, and forbids
// further ones.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "os/process.h"
#include "os/spawn.h"
#include "sandbox/init_protocol.h"
#include "sandbox/mounts.h"
#include "sandbox/profile.h"

namespace sallyport::sandbox {

inline constexpr char kBubblewrap[] = "/usr/bin/bwrap";

// Everything is checked, resolved and open by now. The descriptors are borrowed.
struct SandboxSpec {
  os::Ids ids;                    // whom it runs as; never uid 0
  std::optional<os::Ids> become;  // = ids when the caller is root
  int user_namespace = -1;        // os::Namespace::user and net
  int net_namespace = -1;
  Profile profile;
  std::span<const Mount> mounts;      // the workspace first
  std::array<int, 3> stdio{0, 1, 2};  // the pty's slave three times when terminal is Stdin
  Terminal terminal = Terminal::None;
  int init_program = -1;  // sallyport-init; O_PATH will do
  int control = -1;       // init's end of the control socket
};

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

// Returns once bwrap runs; whether the sandbox came to be is said by init's first answer, or by the child's
// end. The child dies with the calling thread.
Result<os::Child> start_bubblewrap(const SandboxSpec& spec);

}  // namespace sallyport::sandbox
