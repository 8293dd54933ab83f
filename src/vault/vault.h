// The vault as the warden sees it: a start message, Ready, then credentials and gates. Its program
// (apps/sallyport_vault.cc) only adds the walls around it.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "net/worker.h"
#include "policy/grant.h"

namespace sallyport::vault {

struct Start {
  std::string session;
  policy::Grant grant;
};

// Waits for the warden's first message. Before confinement: it asks for the seals of the grant's memory.
Result<Start> receive_start(const Fd& control);

class Vault {
 public:
  // Reads everything that comes from files (trust anchors, resolv.conf): before confinement. The worker
  // outlives the vault.
  static Result<std::unique_ptr<Vault>> make(net::Worker& worker, Start start, Fd control);
  virtual ~Vault() = default;

  // Says Ready and serves until the warden is gone, which is the good end. A message that is none of the
  // warden's is an error: whoever is there is not the warden.
  virtual net::Task<Status> serve() = 0;
};

}  // namespace sallyport::vault
