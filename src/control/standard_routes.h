// The calls that every daemon answers: is it there, can it work, how is it doing, which one is it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "control/api_server.h"
#include "control/health.h"

namespace sallyport::control {

// In every path; raised when a client of the former one would misread an answer.
inline constexpr const char* kApiVersion = "v1";

struct Health {
  std::function<std::optional<NotReady>()> why_not_ready;  // nullopt: it can do its work
  std::function<std::string()> metrics;                    // Prometheus' text format
};

std::vector<Route> standard_routes(Health health);

struct Shutdown {
  std::function<std::size_t()> sessions;  // that are to end first
  std::function<void()> begin;            // once more is as good as once
};

// POST /v1/shutdown, for root and the owner alone: ends the daemon as SIGTERM does. Its stream ends with the
// daemon, cut.
Route shutdown_route(ApiAccess access, Shutdown shutdown);

}  // namespace sallyport::control
