// Unix sockets in a mount: each reaches a daemon of the host, even through a read-only mount.
#pragma once

#include "sandbox/workspace_guard.h"

namespace sallyport::sandbox {

// Hides those that are there by a mount each, and notes them in the guard. More than a few are refused.
Status hide_sockets(const Mount& mount, WorkspaceGuard& guard);

}  // namespace sallyport::sandbox
