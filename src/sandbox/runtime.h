// What every kind of sandbox has in common: a network namespace, sallyport-init as the first program in it,
// which answers on a control socket (init_protocol.h), and one end. Made, used and ended on the warden's
// loop.
#pragma once

#include <sys/types.h>

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/rate.h"
#include "base/result.h"
#include "os/netns.h"
#include "sandbox/init_protocol.h"
#include "sandbox/mounts.h"
#include "sandbox/profile.h"

namespace sallyport::sandbox {

// What is to be in a sandbox; borrowed until start() returns. What to run is not here: it goes to
// sallyport-init with Phase1, so that no variable of the workload's environment (LD_PRELOAD) ever reaches a
// program outside.
struct Contents {
  const ProfileInput& profile;        // with the session's CA
  const std::vector<Mount>& mounts;   // the workspace first
  std::array<int, 3> stdio{0, 1, 2};  // the pty's slave three times when terminal is Stdin
  Terminal terminal = Terminal::None;
};

class Runtime {
 public:
  using OnNamespaces = std::function<void(Status)>;
  using OnInit = std::function<void(Result<Fd> control)>;
  // `how` the sandbox ended, for the user's eyes: "exit code 1: bubblewrap, or sallyport-init in it".
  using OnEnd = std::function<void(std::string how)>;

  // `on_end` is called once nothing of the sandbox runs any more, whatever ended it; not before start() has
  // answered.
  explicit Runtime(OnEnd on_end) : on_end_(std::move(on_end)) {}
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  // What is left of it is killed.
  virtual ~Runtime() = default;

  // Its namespaces, with nothing but loopback and no way out. Each step once, in this order; answers may come
  // before the call returns.
  virtual void make_namespaces(OnNamespaces on_made) = 0;
  os::Namespace& namespaces() { return namespaces_; }
  // The sandbox in them. Its init waits for Phase1 at the other end of `control`, or dies.
  virtual void start(const Contents& contents, OnInit on_init) = 0;
  virtual Result<os::Doors> open_doors(const std::optional<Rate>& new_connections) = 0;
  // Everything in it ends at once. False: there is nothing that could end, so on_end will not be called.
  virtual bool kill() = 0;

  // Whose root is root: of the sandbox's own user namespace, or of the host.
  virtual Users users() const = 0;
  // What the engine and the kernel call it, for the audit log; "" when there is nothing to say.
  virtual std::string identity() const { return ""; }
  // For a process of somebody's that has joined the network namespace: the files of ours that it wants there.
  // False: it is too early.
  virtual Result<bool> furnish(pid_t) { return true; }
  // What the user is to know of it; "" when there is nothing to say.
  virtual std::string notice() const { return ""; }
  // The workload's environment, of what the session has for it.
  virtual std::vector<std::string> environment(std::vector<std::string> ours) const { return ours; }

 protected:
  os::Namespace namespaces_;
  OnEnd on_end_;
};

// The mounts as Phase1 wants them.
std::vector<ExpectedMount> expected_mounts(const std::vector<Mount>& mounts);

}  // namespace sallyport::sandbox
