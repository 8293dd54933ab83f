// The doors of `sallyport serve`: from what the user wrote to the listeners.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "session/serve_request.h"
#include "session/services.h"

namespace sallyport::session {

struct OpenedDoors {
  HostDoors doors;
  std::vector<std::string> addresses;  // ADDRESS:PORT of each request, with the port that was taken
};

// On loopback addresses alone, for connections of `owner` alone. The error is a sentence for the user.
Result<OpenedDoors> open_host_doors(const std::vector<DoorRequest>& requests, uid_t owner);

}  // namespace sallyport::session
