#include "session/places.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "os/safe_path.h"

namespace sallyport::session {
namespace {

// The specification: a relative path in these variables is to be ignored.
std::string base_folder(const char* name, const std::string& fallback) {
  const char* value = std::getenv(name);
  return value != nullptr && value[0] == '/' ? value : fallback;
}

}  // namespace

Places user_places(const std::string& home) {
  return {.config = base_folder("XDG_CONFIG_HOME", home + "/.config") + "/sallyport/config.toml",
          .state = base_folder("XDG_STATE_HOME", home + "/.local/state") + "/sallyport"};
}

Places system_places() {
  return {.config = "/etc/sallyport/config.toml", .state = "/var/lib/sallyport"};
}

Status make_state_folder(const std::string& path) {
  if (::geteuid() != 0) {
    auto folder = os::make_private_folder(path);
    return folder ? Status() : fail(std::move(folder));
  }
  if (::mkdir(path.c_str(), 0711) != 0 && errno != EEXIST)
    return fail_errno(Reason::Internal, "make " + path);
  return {};
}

}  // namespace sallyport::session
