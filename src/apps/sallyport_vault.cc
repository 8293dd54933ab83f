// sallyport-vault: the one process that holds credentials. Started by the warden with its control socket as
// descriptor 3:
//
//   sallyport-vault [--uid N --gid N]      the ids to take on, when started as root
//
// It reads what it needs from files, locks itself in, says Ready, and only then is given credentials. It ends
// when the warden's end of the socket closes.

#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "net/worker.h"
#include "os/confine.h"
#include "vault/vault.h"

namespace {

using namespace sallyport;

// Lanes, as many connections to upstreams, the pool, and what the libraries need.
constexpr rlim_t kMaxOpenFiles = 1024;
// For Secrets: some pages for each credential and each request that is being sent. The usual limit of a user
// is 8 MiB, which is enough too.
constexpr rlim_t kMaxLockedBytes = 16UL * 1024 * 1024;

[[noreturn]] void end(int exit_code, const std::string& why) {
  if (!why.empty()) std::fprintf(stderr, "sallyport-vault: %s\n", why.c_str());
  // Coroutines that still wait borrow from each other in ways that no order of destruction fits; the kernel
  // closes what is open, and hands no page on without clearing it.
  std::_Exit(exit_code);
}

Status limit_resources() {
  // A peer that goes while we write is an error value, not a signal.
  if (::signal(SIGPIPE, SIG_IGN) == SIG_ERR) return fail_errno(Reason::Internal, "signal");
  if (Status status = os::limit_resource(RLIMIT_NOFILE, kMaxOpenFiles); !status) return status;
  return os::limit_resource(RLIMIT_MEMLOCK, kMaxLockedBytes);
}

net::Task<> serve(net::Worker& worker, vault::Vault& vault, Status& outcome) {
  outcome = co_await vault.serve();
  worker.stop();
}

Status run(int argc, char** argv) {
  // First of all: nothing may look into this process, not even while it starts.
  if (Status status = os::deny_tracing(); !status) return status;
  if (Status status = limit_resources(); !status) return status;
  auto ids = os::parse_ids(argc, argv);
  if (!ids) return fail(std::move(ids));

  Fd control(os::kControlFd);
  auto start = vault::receive_start(control);
  if (!start) return fail(std::move(start));
  net::Worker worker;
  auto vault = vault::Vault::make(worker, std::move(*start), std::move(control));
  if (!vault) return fail(std::move(vault));

  // No credential has come yet.
  if (Status status = os::apply({.role = os::Role::Vault, .become = *ids}); !status) return status;
  Status outcome;
  worker.spawn("the vault", serve(worker, **vault, outcome));
  worker.run();
  end(outcome ? EXIT_SUCCESS : EXIT_FAILURE, outcome ? "" : outcome.error().detail);
}

}  // namespace

int main(int argc, char** argv) {
  const Status status = run(argc, argv);
  end(EXIT_FAILURE, status.error().detail);
}
