// What sallyport-init is asked to prove before anything runs: that nothing answers while the doors are shut,
// and that nobody but our gate does once they are open.
#pragma once

#include <vector>

#include "sandbox/decoys.h"
#include "sandbox/init_protocol.h"
#include "sandbox/mounts.h"
#include "wire/messages.h"

namespace sallyport::session {

sandbox::Phase1 ask_with_shut_doors(const std::vector<sandbox::Mount>& mounts, const sandbox::Decoys& decoys,
                                    sandbox::Terminal terminal, sandbox::Users users);
sandbox::Phase2 ask_with_open_doors(const wire::GateProbe& probe, const sandbox::Decoys& decoys,
                                    bool with_ipv6);
// What the gate answers a probe with, meanwhile; new ones for each session.
wire::GateProbe make_gate_probe();

}  // namespace sallyport::session
