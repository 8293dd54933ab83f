// Whether sandboxes can be made here: each layer that one stands on is tried by itself, so that what is wrong
// with a host is told by the layer and not by a failed start. Nothing stays of what is tried.
#pragma once

#include <cstdint>
#include <string>

#include "session/identity.h"

namespace sallyport::session {

enum class Health : std::uint8_t { Ok, Missing, Broken };

struct Diagnosis {
  Health health = Health::Ok;
  std::string detail;  // what was seen, in plain words
  std::string remedy = "";
};

// The programs of ours beside the running one.
Diagnosis diagnose_programs();
// A user and a network namespace; the error names the switch that forbids them.
Diagnosis diagnose_namespaces(const Identities& identities);
// The doors in them. Missing: nftables, without which only some ports have a door.
Diagnosis diagnose_doors(const Identities& identities);
// A command sealed off by bubblewrap, under our filter of system calls.
Diagnosis diagnose_bubblewrap(const Identities& identities);
// Watches on files, with which credentials, policies and workspaces are followed.
Diagnosis diagnose_file_watches();
// Processes and descriptors that this user may have.
Diagnosis diagnose_limits();
// Missing: without them nothing but a container engine's limits is lost.
Diagnosis diagnose_cgroups();
// The authorities that the system trusts.
Diagnosis diagnose_authorities();
// All of it: a whole session with a gate and a vault that confine themselves, and its pre-flight, for `true`
// in an empty folder.
Diagnosis diagnose_session(const Identities& identities);

}  // namespace sallyport::session
