// sallyport-vault: the one process that holds credentials. It is given them once it says Ready.

#include "apps/confined_program.h"
#include "vault/vault.h"

namespace {

using namespace sallyport;

// Lanes, as many connections to upstreams, the pool, and what the libraries need.
constexpr rlim_t kMaxOpenFiles = 1024;
// For Secrets: some pages for each credential and each request that is being sent. The usual limit of a user
// is 8 MiB, which is enough too.
constexpr rlim_t kMaxLockedBytes = 16UL * 1024 * 1024;

Result<std::unique_ptr<vault::Vault>> make(net::Worker& worker, Fd control) {
  if (Status status = os::limit_resource(RLIMIT_MEMLOCK, kMaxLockedBytes); !status) {
    return fail(std::move(status));
  }
  auto start = vault::receive_start(control);
  if (!start) return fail(std::move(start));
  return vault::Vault::make(worker, std::move(*start), std::move(control));
}

}  // namespace

int main(int argc, char** argv) {
  run_confined({"sallyport-vault", os::Role::Vault, kMaxOpenFiles}, make, argc, argv);
}
