// What the sessions of a warden have in common: one gate, one vault, and one watch on files.
#pragma once

#include "os/event_loop.h"
#include "os/file_watcher.h"
#include "session/identity.h"
#include "session/service_process.h"

namespace sallyport::session {

class Gateway {
 public:
  explicit Gateway(os::EventLoop& loop)
      : file_watcher_(loop), gate_(loop, "sallyport-gate"), vault_(loop, "sallyport-vault") {}

  // Before the first session; nothing afterwards. `system_roots`: some session may need the authorities that
  // the system trusts.
  Status start(const Identities& identities, bool system_roots) {
    if (auto status = vault_.start(identities.become_vault, system_roots); !status) return status;
    return gate_.start(identities.become_gate, system_roots);
  }

  os::FileWatcher& file_watcher() { return file_watcher_; }
  ServiceProcess& gate() { return gate_; }
  ServiceProcess& vault() { return vault_; }

 private:
  os::FileWatcher file_watcher_;
  ServiceProcess gate_;
  ServiceProcess vault_;
};

}  // namespace sallyport::session
