// What the user of `sallyport serve` asked for. Paths are absolute; nothing is read or checked yet.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/sources.h"
#include "wire/messages.h"

namespace sallyport::session {

struct DoorRequest {
  wire::HostDoorUse use;
  std::string text;  // ADDRESS:PORT; of Fixed ADDRESS:PORT=URL
};

struct ServeRequest {
  config::Sources sources;
  std::string audit_path;
  std::string ca_file;  // where the authorities are written that clients shall trust; "": nowhere
  std::vector<DoorRequest> doors;
};

}  // namespace sallyport::session
