// What reaching upstreams takes from the system's files, once in a process: its sessions share it, and those
// that begin after its confinement could not read it any more.
#pragma once

#include <memory>

#include "base/result.h"
#include "net/dial.h"
#include "net/tls.h"
#include "net/worker.h"

namespace sallyport::upstream {

struct Environment {
  std::unique_ptr<net::Resolver> resolver;
  net::SslContext system_roots;  // null when they are not wanted, or there are none

  // Reads resolv.conf, and with `system_roots` the authorities that the system trusts. The worker outlives
  // the environment.
  static Result<Environment> load(net::Worker& worker, bool system_roots);
};

}  // namespace sallyport::upstream
