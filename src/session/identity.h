// As whom the processes of a session run. Kernel uid 0 is never mapped into a sandbox.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "os/process.h"

namespace sallyport::session {

// The uids of gate and vault when the warden is root: those of the users of these names when the host has
// them, else these numbers, which no Debian package and no useradd default uses.
inline constexpr char kGateUser[] = "sallyport-gate";
inline constexpr char kVaultUser[] = "sallyport-vault";
inline constexpr uid_t kGateUid = 64'871;
inline constexpr uid_t kVaultUid = 64'872;

struct Identities {
  os::Ids sandbox;
  // Set when the warden is root: whom each process becomes. Rootless all have the user's uid.
  std::optional<os::Ids> become_sandbox;
  std::optional<os::Ids> become_gate;
  std::optional<os::Ids> become_vault;
  std::string user_name;  // of the sandbox's uid
  std::string home;       // of the sandbox's uid, on the host
};

// Of a session that another user asked a daemon for, which is root: the sandbox is that user.
Identities identities_for(const os::Ids& client);

// What the system's user database calls it; "" when it has no such user.
std::string user_name(uid_t uid);

// Of gate and vault alone, where there is no sandbox.
Identities service_identities(const os::Ids& caller);

// `workspace_owner`: started as root, the sandbox runs as the workspace's owner, which must not be root.
// `caller_home`: what the caller's HOME says; used when the sandbox is the caller.
Result<Identities> choose_identities(const os::Ids& caller, const os::Ids& workspace_owner,
                                     const std::string& caller_home);

}  // namespace sallyport::session
