// sallyport-gate: everything that a sandbox sends arrives here, and no credential ever does. Started by the
// warden with its control socket as descriptor 3:
//
//   sallyport-gate [--uid N --gid N]      the ids to take on, when started as root
//
// It reads what it needs from files, locks itself in, says Ready and serves until the warden's end closes.

#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "gate/gate.h"
#include "net/worker.h"
#include "os/confine.h"

namespace {

using namespace sallyport;

// A session's connections, as many towards upstreams, lanes, doors, and what the libraries need.
constexpr rlim_t kMaxOpenFiles = 2048;

[[noreturn]] void end(int exit_code, const std::string& why) {
  if (!why.empty()) std::fprintf(stderr, "sallyport-gate: %s\n", why.c_str());
  // Coroutines that still wait borrow from each other in ways that no order of destruction fits; the kernel
  // closes what is open.
  std::_Exit(exit_code);
}

Status limit_resources() {
  // A peer that goes while we write is an error value, not a signal.
  if (::signal(SIGPIPE, SIG_IGN) == SIG_ERR) return fail_errno(Reason::Internal, "signal");
  return os::limit_resource(RLIMIT_NOFILE, kMaxOpenFiles);
}

net::Task<> serve(net::Worker& worker, gate::Gate& gate, Status& outcome) {
  outcome = co_await gate.serve();
  worker.stop();
}

Status run(int argc, char** argv) {
  // First of all: nothing may look into this process, not even while it starts.
  if (Status status = os::deny_tracing(); !status) return status;
  if (Status status = limit_resources(); !status) return status;
  auto ids = os::parse_ids(argc, argv);
  if (!ids) return fail(std::move(ids));

  Fd control(os::kControlFd);
  auto start = gate::receive_start(control);
  if (!start) return fail(std::move(start));
  net::Worker worker;
  auto gate = gate::Gate::make(worker, start->message, std::move(start->grant), std::move(control));
  if (!gate) return fail(std::move(gate));

  if (Status status = os::apply({.role = os::Role::Gate, .become = *ids}); !status) return status;
  Status outcome;
  worker.spawn("the gate", serve(worker, **gate, outcome));
  worker.run();
  end(outcome ? EXIT_SUCCESS : EXIT_FAILURE, outcome ? "" : outcome.error().detail);
}

}  // namespace

int main(int argc, char** argv) {
  const Status status = run(argc, argv);
  end(EXIT_FAILURE, status.error().detail);
}
