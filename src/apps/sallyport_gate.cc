// sallyport-gate: everything that a sandbox sends arrives here, and no credential ever does.

#include "apps/confined_program.h"
#include "gate/gate.h"

namespace {

using namespace sallyport;

// A session's connections, as many towards upstreams, their pipes and lanes; doors, and what the libraries
// need.
constexpr rlim_t max_open_files(std::uint32_t connections) {
  return 256 + rlim_t{7} * connections;
}
constexpr rlim_t kMaxOpenFiles = max_open_files(policy::kMaxAtOnce);

Result<std::unique_ptr<gate::Gate>> make(net::Worker& worker, Fd control) {
  auto start = gate::receive_start(control);
  if (!start) return fail(std::move(start));
  const rlim_t files = max_open_files(start->grant.limits.connections);
  if (Status limited = os::limit_resource(RLIMIT_NOFILE, files); !limited) return fail(std::move(limited));
  return gate::Gate::make(worker, start->message, std::move(start->grant), std::move(control));
}

}  // namespace

int main(int argc, char** argv) {
  run_confined({"sallyport-gate", os::Role::Gate, kMaxOpenFiles}, make, argc, argv);
}
