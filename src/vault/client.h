// The gate's side of the lanes: an Opener whose exchanges go through the vault.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/fd.h"
#include "net/worker.h"
#include "policy/grant.h"
#include "upstream/exchange.h"

namespace sallyport::vault {

// Lanes that one gate may have open at once; further requests are refused with Overloaded.
inline constexpr std::size_t kMaxLanes = 256;
// Lanes that wait for their next request; more are closed when their request ends.
inline constexpr std::size_t kMaxIdleLanes = 8;
// How much longer than the vault's own limit (lane_silence()) a lane may be silent while a request is under
// way: the vault keeps its limits, so this one tells that the vault hangs.
inline constexpr std::chrono::seconds kVaultGrace{30};

class Client : public upstream::Opener {
 public:
  static std::unique_ptr<Client> make(net::Worker& worker, std::string session,
                                      const policy::Timeouts& timeouts = {});
  // The socket on which lanes are handed over; replaces the one before (a restarted vault). Without one,
  // open() fails with VaultUnavailable. What the vault thinks of a request is told by its exchange, not by
  // open().
  virtual void use_channel(Fd channel) = 0;
};

}  // namespace sallyport::vault
