// sallyport-gate: everything that a sandbox sends arrives here, and no credential ever does. Started by the
// warden with its control socket as descriptor 3:
//
//   sallyport-gate [--uid N --gid N]      the ids to take on, when started as root
//
// It reads what it needs from files, locks itself in, says Ready and serves until the warden's end closes.

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
#include "gate/gate.h"
#include "net/worker.h"
#include "os/confine.h"

namespace {

using namespace sallyport;

constexpr int kControlFd = 3;
// A session's connections, as many towards upstreams, lanes, doors, and what the libraries need.
constexpr rlim_t kMaxOpenFiles = 2048;

[[noreturn]] void end(int exit_code, const std::string& why) {
  if (!why.empty()) std::fprintf(stderr, "sallyport-gate: %s\n", why.c_str());
  // Coroutines that still wait borrow from each other in ways that no order of destruction fits; the kernel
  // closes what is open.
  std::_Exit(exit_code);
}

// nullopt: none are named. Anything but exactly both is a mistake of the warden's.
Result<std::optional<os::Ids>> parse_ids(int argc, char** argv) {
  if (argc == 1) return std::nullopt;
  if (argc != 5 || std::string_view(argv[1]) != "--uid" || std::string_view(argv[3]) != "--gid") {
    return fail(Reason::Internal, "usage: sallyport-gate [--uid N --gid N]");
  }
  const auto uid = parse_decimal(argv[2], std::numeric_limits<uid_t>::max());
  const auto gid = parse_decimal(argv[4], std::numeric_limits<gid_t>::max());
  if (!uid || !gid) return fail(Reason::Internal, "--uid and --gid take numbers");
  return os::Ids{static_cast<uid_t>(*uid), static_cast<gid_t>(*gid)};
}

Status limit_resources() {
  // A peer that goes while we write is an error value, not a signal.
  if (::signal(SIGPIPE, SIG_IGN) == SIG_ERR) return fail_errno(Reason::Internal, "signal");
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return fail_errno(Reason::Internal, "getrlimit");
  files.rlim_cur = files.rlim_max = std::min(files.rlim_max, kMaxOpenFiles);
  if (::setrlimit(RLIMIT_NOFILE, &files) != 0) return fail_errno(Reason::Internal, "setrlimit");
  return {};
}

net::Task<> serve(net::Worker& worker, gate::Gate& gate, Status& outcome) {
  outcome = co_await gate.serve();
  worker.stop();
}

Status run(int argc, char** argv) {
  // First of all: nothing may look into this process, not even while it starts.
  if (Status status = os::deny_tracing(); !status) return status;
  if (Status status = limit_resources(); !status) return status;
  auto ids = parse_ids(argc, argv);
  if (!ids) return fail(std::move(ids));

  Fd control(kControlFd);
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
