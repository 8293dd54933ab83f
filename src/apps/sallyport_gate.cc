// sallyport-gate: everything that sandboxes send arrives here, and no credential ever does.

#include "apps/confined_program.h"
#include "gate/gate.h"

namespace {

// As many as the host lets a process have: for each session doors and what it speaks with, for each of its
// connections one towards its upstream, pipes and a lane. A session's own limit is its number of connections.
constexpr rlim_t kMaxOpenFiles = 1'048'576;

}  // namespace

int main(int argc, char** argv) {
  using namespace sallyport;
  run_confined<gate::Gate>({"sallyport-gate", os::Role::Gate, kMaxOpenFiles}, argc, argv);
}
