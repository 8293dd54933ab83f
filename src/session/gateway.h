// What the sessions of a warden have in common: one gate, one vault, one watch on files, one remover of
// folders, and the numbers of them all.
#pragma once

#include <optional>
#include <utility>

#include "audit/meter.h"
#include "container/host.h"
#include "os/event_loop.h"
#include "os/file_watcher.h"
#include "session/identity.h"
#include "session/service_process.h"
#include "session/tree_removals.h"

namespace sallyport::session {

class Gateway {
 public:
  // `containers`: where they are made; a gateway without makes none.
  explicit Gateway(os::EventLoop& loop, std::optional<container::Settings> containers = std::nullopt)
      : file_watcher_(loop), removals_(loop), gate_(loop, "sallyport-gate"), vault_(loop, "sallyport-vault") {
    if (containers) containers_.emplace(loop, *std::move(containers));
  }

  // Before the first session; nothing afterwards. `system_roots`: some session may need the authorities that
  // the system trusts.
  Status start(const Identities& identities, bool system_roots) {
    if (auto status = vault_.start(identities.become_vault, system_roots); !status) return status;
    return gate_.start(identities.become_gate, system_roots);
  }

  os::FileWatcher& file_watcher() { return file_watcher_; }
  TreeRemovals& removals() { return removals_; }
  ServiceProcess& gate() { return gate_; }
  ServiceProcess& vault() { return vault_; }
  audit::Meter& meter() { return meter_; }
  std::optional<container::Host>& containers() { return containers_; }

 private:
  audit::Meter meter_;
  os::FileWatcher file_watcher_;
  TreeRemovals removals_;
  ServiceProcess gate_;
  ServiceProcess vault_;
  std::optional<container::Host> containers_;
};

}  // namespace sallyport::session
