// sallyport-gate: everything that a sandbox sends arrives here, and no credential ever does.

#include "apps/confined_program.h"
#include "gate/gate.h"

namespace {

using namespace sallyport;

// A session's connections, as many towards upstreams, lanes, doors, and what the libraries need.
constexpr rlim_t kMaxOpenFiles = 2048;

Result<std::unique_ptr<gate::Gate>> make(net::Worker& worker, Fd control) {
  auto start = gate::receive_start(control);
  if (!start) return fail(std::move(start));
  return gate::Gate::make(worker, start->message, std::move(start->grant), std::move(control));
}

}  // namespace

int main(int argc, char** argv) {
  run_confined({"sallyport-gate", os::Role::Gate, kMaxOpenFiles}, make, argc, argv);
}
