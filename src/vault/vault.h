// One session's vault as the warden sees it: a start message, Ready, then credentials and gates. Its program
// (apps/sallyport_vault.cc) only adds the walls around it.
#pragma once

#include <memory>

#include "base/result.h"
#include "net/packet_channel.h"
#include "net/worker.h"
#include "upstream/environment.h"

namespace sallyport::vault {

class Vault {
 public:
  // Waits for the warden's first message, and makes what it asks for. The worker, which is the vault's alone,
  // and the environment outlive it.
  static net::Task<Result<std::unique_ptr<Vault>>> begin(net::Worker& worker,
                                                         upstream::Environment& environment,
                                                         std::unique_ptr<net::PacketChannel> warden);
  virtual ~Vault() = default;

  // Says Ready and serves until the warden is gone, which is the good end. A message that is none of the
  // warden's is an error: whoever is there is not the warden. Then nothing that was started here may run any
  // further: end the worker, and destroy the vault when that has ended.
  virtual net::Task<Status> serve() = 0;
};

}  // namespace sallyport::vault
