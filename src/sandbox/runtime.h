// What every kind of sandbox has in common: it is started from a SandboxSpec, sallyport-init runs in it first
// and answers on the control socket (init_protocol.h), and its end is the end of one process.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "os/process.h"
#include "os/spawn.h"
#include "sandbox/init_protocol.h"
#include "sandbox/mounts.h"
#include "sandbox/profile.h"

namespace sallyport::sandbox {

// Everything is checked, resolved and open by now. The descriptors are borrowed until start() returns. What
// to run is not here: it goes to sallyport-init with Phase1, so that no variable of the workload's
// environment (LD_PRELOAD) ever reaches a program outside.
struct SandboxSpec {
  os::Ids ids;                    // whom it runs as; never uid 0
  std::optional<os::Ids> become;  // = ids when the caller is root
  int user_namespace = -1;        // os::Namespace::user and net
  int net_namespace = -1;
  Profile profile;
  std::vector<Mount> mounts;          // the workspace first
  std::array<int, 3> stdio{0, 1, 2};  // the pty's slave three times when terminal is Stdin
  Terminal terminal = Terminal::None;
  int init_program = -1;  // sallyport-init; O_PATH will do
  int control = -1;       // init's end of the control socket
};

class Runtime {
 public:
  virtual ~Runtime() = default;
  // Returns once the program that makes the sandbox runs; whether the sandbox came to be is said by init's
  // first answer, or by the child's end. The child dies with the calling thread.
  virtual Result<os::Child> start(const SandboxSpec& spec) = 0;
};

// The mounts as Phase1 wants them.
std::vector<ExpectedMount> expected_mounts(const std::vector<Mount>& mounts);

}  // namespace sallyport::sandbox
