// What another grant means for the processes of a session that runs.
#pragma once

#include "session/grant_plan.h"

namespace sallyport::session {

struct GrantChange {
  // A gate takes other rules, hosts and name servers as it runs; other limits and timeouts need another gate.
  bool needs_gate = false;
  // A vault has one grant and opens its credentials once: anything that it goes by needs another vault.
  bool needs_vault = false;
};
GrantChange change_between(const GrantPlan& before, const GrantPlan& after);

}  // namespace sallyport::session
