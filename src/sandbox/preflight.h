// The proof, from inside and before the workload runs, that the sandbox does not leak. One function a check;
// each Failed names the leak it found. docs/sandbox.md has them as a table.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "sandbox/init_protocol.h"

namespace sallyport::sandbox {

// How long what was connected to may take to answer: a gate that has just been started does not listen yet.
inline constexpr std::chrono::milliseconds kAnswerTimeout{15'000};

using Leak = std::optional<Failed>;

inline Leak leak(Check check, std::string detail) {
  return Failed{check, std::move(detail)};
}

// All checks of a phase, up to the first leak. `keep` is the control socket, the one descriptor above 2.
Leak run_phase1(const Phase1& phase, const Workload& workload, int keep);
Leak run_phase2(const Phase2& phase);

Leak check_interfaces();
Leak check_unreachable(const std::vector<os::Endpoint>& addresses, const DecoyList& decoys);
Leak check_privileges();
Leak check_uid_map(Users users);
Leak check_system_calls();
Leak check_socket_families();
Leak check_host_sockets(const std::vector<ExpectedMount>& mounts, const Workload& workload);
Leak check_abstract_socket(const std::string& name);
Leak check_proc_sys();
Leak check_mounts(const std::vector<ExpectedMount>& mounts);
Leak check_descriptors(int keep);
Leak check_canary(const std::string& canary, const Workload& workload);
Leak check_door(const Phase2& phase);

}  // namespace sallyport::sandbox
