// Which engine it is, which version of the API both sides speak, and what it can do for a sandbox.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "engine/host_config.h"

namespace sallyport::engine {

struct ApiVersion {
  unsigned major = 0;
  unsigned minor = 0;

  auto operator<=>(const ApiVersion&) const = default;
  std::string text() const;
};

// "1.41".
std::optional<ApiVersion> parse_api_version(std::string_view text);

// Tested with a real engine of 1.41 (Docker 20.10). Newer ones still answer in it, or, if they do
// not go so far back, in one up to that which their documents leave as it is for what is used here.
inline constexpr ApiVersion kNewestApi{1, 44};
// Docker 20.10, of December 2020: the first with a container's own cgroup namespace.
inline constexpr ApiVersion kOldestApi{1, 41};

enum class Privilege { Root, Rootless };

struct EngineInfo {
  EngineKind kind = EngineKind::Docker;
  std::string version;      // the engine's own: "20.10.24"
  ApiVersion api;           // in which it is asked
  std::string id;           // its own name for itself, stable; "" for an engine that has none
  std::string storage;      // "overlay2"
  std::string data_folder;  // "/var/lib/docker"
  Privilege privilege = Privilege::Root;
  CgroupVersion cgroups = CgroupVersion::Two;
  bool seccomp = false;
  bool apparmor = false;
  bool user_namespaces = false;  // root in a container is somebody else on the host
  bool live_restore = false;     // containers outlive the engine's process
  std::string default_runtime;
};

// The answer of GET /version. An engine too old or too new is an error that tells both sides' versions.
Result<EngineInfo> read_version(std::string_view text);
// The answer of GET /info adds to it.
Status read_info(std::string_view text, EngineInfo& into);

}  // namespace sallyport::engine
