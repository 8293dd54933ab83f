#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "engine/container_state.h"
#include "engine/host_config.h"

// Whatever an engine says is read or refused; and what is privileged never passes.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sallyport::engine;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto state = read_container_state(text);
  if (!state) return 0;
  Demands demands;
  demands.seccomp_profile = R"({"defaultAction":"SCMP_ACT_ALLOW"})";
  demands.seccomp_profile_path = "/profile";
  const auto found = problems(*state, demands);
  if (found.empty() && (state->host.privileged || state->host.network_mode == "host")) std::abort();
  return 0;
}
