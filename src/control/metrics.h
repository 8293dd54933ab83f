// The numbers of a daemon in Prometheus' text format; docs/metrics.md has a line for each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "audit/meter.h"

namespace sallyport::control {

// What is no audit event.
struct DaemonState {
  struct Process {
    std::string name;
    bool running = false;
    std::uint64_t deaths = 0;
  };
  std::vector<Process> processes;
  std::map<std::string, std::size_t> sessions;  // by state, with those that have none
  std::size_t containers = 0;                   // sessions in containers of an engine
};

std::string metrics_text(const DaemonState& daemon, const audit::Meter& meter);

}  // namespace sallyport::control
