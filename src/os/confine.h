// The wall around the gate and the vault. Rootless they share the user's uid with everything else, so this is
// what separates them: it is never optional, and a step that cannot be taken is an error that names what the
// kernel lacks. A confined process may use the descriptors it holds or is sent, dial TCP and UDP, and nothing
// else: no file, no process, no program, no other socket family.
//
// All of this holds for the calling process, which must have one thread. Libraries that read files (OpenSSL's
// configuration, resolv.conf, time zones, /dev/urandom for c-ares) must have done so before.
#pragma once

#include <optional>

#include "base/result.h"
#include "os/process.h"

namespace sallyport::os {

enum class Role { Gate, Vault };

struct Confinement {
  Role role = Role::Gate;
  std::optional<Ids> become;  // needed when started as root: neither role ever runs as uid 0
};

// All steps in their order, then verify_confined().
Status apply(const Confinement& confinement);

// The steps. deny_tracing() comes first, before a secret is read, and again after a change of ids.
Status deny_tracing();                                       // not dumpable, no core file
Status drop_capabilities(const std::optional<Ids>& become);  // changes ids too: the bounding set goes before
Status set_no_new_privileges();
Status leave_file_system();            // Landlock
Status allow_system_calls(Role role);  // seccomp

// Asks the kernel, not our memory, whether everything above holds.
Status verify_confined();

}  // namespace sallyport::os
