// sallyport-vault: the one process that holds credentials. It is given a session's once it says Ready for it.

#include "apps/confined_program.h"
#include "vault/vault.h"

namespace {

// For each session its lanes, as many connections to upstreams, and the pool.
constexpr rlim_t kMaxOpenFiles = 1'048'576;
// For Secrets: some pages for each credential and each request that is being sent. The usual limit of a user
// is 8 MiB, which is enough for hundreds of sessions.
constexpr rlim_t kMaxLockedBytes = 64UL * 1024 * 1024;

}  // namespace

int main(int argc, char** argv) {
  using namespace sallyport;
  run_confined<vault::Vault>({"sallyport-vault", os::Role::Vault, kMaxOpenFiles, kMaxLockedBytes}, argc,
                             argv);
}
