// sallyport-vault: the one process that holds credentials. Started by the warden with its control socket as
// descriptor 3:
//
//   sallyport-vault [--uid N --gid N]      the ids to take on, when started as root
//
// It reads what it needs from files, locks itself in, says Ready, and only then is given credentials. It ends
// when the warden's end of the socket closes.

#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "base/text.h"
#include "net/worker.h"
#include "os/confine.h"
#include "vault/vault.h"

namespace {

using namespace sallyport;

constexpr int kControlFd = 3;
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

// nullopt: none are named. Anything but exactly both is a mistake of the warden's.
Result<std::optional<os::Ids>> parse_ids(int argc, char** argv) {
  if (argc == 1) return std::nullopt;
  if (argc != 5 || std::string_view(argv[1]) != "--uid" || std::string_view(argv[3]) != "--gid") {
    return fail(Reason::Internal, "usage: sallyport-vault [--uid N --gid N]");
  }
  const auto uid = parse_decimal(argv[2], std::numeric_limits<uid_t>::max());
  const auto gid = parse_decimal(argv[4], std::numeric_limits<gid_t>::max());
  if (!uid || !gid) return fail(Reason::Internal, "--uid and --gid take numbers");
  return os::Ids{static_cast<uid_t>(*uid), static_cast<gid_t>(*gid)};
}

// As much as is allowed, at most `most`. Root may also allow itself more.
Status limit(decltype(RLIMIT_NOFILE) resource, rlim_t most) {
  rlimit values{};
  if (::getrlimit(resource, &values) != 0) return fail_errno(Reason::Internal, "getrlimit");
  const rlimit wanted{most, most};
  if (values.rlim_max < most && ::setrlimit(resource, &wanted) == 0) return {};
  values.rlim_cur = values.rlim_max = std::min(values.rlim_max, most);
  if (::setrlimit(resource, &values) != 0) return fail_errno(Reason::Internal, "setrlimit");
  return {};
}

Status limit_resources() {
  // A peer that goes while we write is an error value, not a signal.
  if (::signal(SIGPIPE, SIG_IGN) == SIG_ERR) return fail_errno(Reason::Internal, "signal");
  if (Status status = limit(RLIMIT_NOFILE, kMaxOpenFiles); !status) return status;
  return limit(RLIMIT_MEMLOCK, kMaxLockedBytes);
}

net::Task<> serve(net::Worker& worker, vault::Vault& vault, Status& outcome) {
  outcome = co_await vault.serve();
  worker.stop();
}

Status run(int argc, char** argv) {
  // First of all: nothing may look into this process, not even while it starts.
  if (Status status = os::deny_tracing(); !status) return status;
  if (Status status = limit_resources(); !status) return status;
  auto ids = parse_ids(argc, argv);
  if (!ids) return fail(std::move(ids));

  Fd control(kControlFd);
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
