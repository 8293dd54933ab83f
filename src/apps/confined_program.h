// The life of the gate and of the vault, from main() to their end. Started by the warden with its control
// socket as descriptor 3,
//
//   PROGRAM [--uid N --gid N]      the ids to take on, when started as root
//
// each reads what it needs from files, locks itself in, says Ready and serves until the warden's end closes.
#pragma once

#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "base/fd.h"
#include "base/result.h"
#include "net/worker.h"
#include "os/confine.h"

namespace sallyport {

struct ConfinedProgram {
  const char* name;
  os::Role role;
  rlim_t max_open_files;
};

[[noreturn]] inline void end_confined(const ConfinedProgram& program, const Status& outcome) {
  if (!outcome) std::fprintf(stderr, "%s: %s\n", program.name, outcome.error().detail.c_str());
  // Coroutines that still wait borrow from each other in ways that no order of destruction fits; the kernel
  // closes what is open, and hands no page on without clearing it.
  std::_Exit(outcome ? EXIT_SUCCESS : EXIT_FAILURE);
}

inline Result<std::optional<os::Ids>> prepare_confined(const ConfinedProgram& program, int argc,
                                                       char** argv) {
  // First of all: nothing may look into this process, not even while it starts.
  if (Status status = os::deny_tracing(); !status) return fail(std::move(status));
  // A peer that goes while we write is an error value, not a signal.
  if (::signal(SIGPIPE, SIG_IGN) == SIG_ERR) return fail_errno(Reason::Internal, "signal");
  if (Status status = os::limit_resource(RLIMIT_NOFILE, program.max_open_files); !status) {
    return fail(std::move(status));
  }
  return os::parse_ids(argc, argv);
}

template <class Server>
net::Task<> serve_until_end(net::Worker& worker, Server& server, Status& outcome) {
  outcome = co_await server.serve();
  worker.stop();
}

// `make`: of (net::Worker&, Fd control), a Result of an owned Server. It may read files; no credential has
// come yet.
template <class Make>
[[noreturn]] void run_confined(const ConfinedProgram& program, Make make, int argc, char** argv) {
  const auto ids = prepare_confined(program, argc, argv);
  if (!ids) end_confined(program, fail(Result(ids)));
  net::Worker worker;
  auto server = make(worker, Fd(os::kControlFd));
  if (!server) end_confined(program, fail(std::move(server)));
  Status outcome = os::apply({.role = program.role, .become = *ids});
  if (outcome) {
    worker.spawn(program.name, serve_until_end(worker, **server, outcome));
    worker.run();
  }
  end_confined(program, outcome);
}

}  // namespace sallyport
