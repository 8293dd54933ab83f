// The calls that every daemon answers: is it there, can it work, how is it doing, which one is it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "control/api_server.h"

namespace sallyport::control {

// In every path; raised when a client of the former one would misread an answer.
inline constexpr const char* kApiVersion = "v1";

struct Health {
  std::function<std::optional<std::string>()> why_not_ready;  // nullopt: gate and vault are up
  std::function<std::string()> metrics;                       // Prometheus' text format
};

std::vector<Route> standard_routes(Health health);

}  // namespace sallyport::control
