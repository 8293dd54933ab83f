// The files of a session that runs, read again: what they say now takes force for everything that begins, and
// ends what they do not allow any more. Files that cannot be used change nothing.
#pragma once

#include <expected>
#include <functional>
#include <string>
#include <vector>

#include "session/grant_plan.h"
#include "session/journal.h"
#include "session/plan.h"
#include "session/services.h"

namespace sallyport::session {

// How it came out.
struct Regranted {
  std::string problem;               // "": in force as the files are now; else why what was read before stays
  std::vector<std::string> changes;  // what is new and what is gone, in words; none: they say the same
};

class Regrant {
 public:
  using Planned = std::expected<GrantPlan, std::string>;
  using OnDone = std::function<void(const Regranted&)>;
  struct Callbacks {
    // What the files say now, as strictly as at the start; the error is for the user.
    std::function<Planned()> plan;
    std::function<void(const std::string&)> on_notice;
  };

  explicit Regrant(Callbacks callbacks) : callbacks_(std::move(callbacks)) {}

  // One that is asked for while another is under way, or before begin(), follows it.
  void ask(OnDone on_done);

  // The session can be used by the plan that is given, which is changed when another takes force. All of
  // them outlive this, or are gone after end().
  void begin(GrantPlan& in_force, Services& services, Journal& journal);
  // From Services, as they come.
  void on_grant_in_force();
  void on_grant_usable();
  // The session is over: nobody waits any longer.
  void end();

 private:
  void read_again();
  Status use_files();
  void record();
  void finish(std::string problem);

  Callbacks callbacks_;
  GrantPlan* in_force_ = nullptr;  // between begin() and end(), as are the next two
  Services* services_ = nullptr;
  Journal* journal_ = nullptr;
  bool over_ = false;
  std::vector<OnDone> under_way_;  // not empty: one is
  std::vector<OnDone> waiting_;    // for the one that follows
  std::vector<std::string> changes_;
};

// What the files of a sandbox's session say while it runs. Nothing that it may have written is believed, and
// no credential may lie where it could read it.
Regrant::Planned plan_grant_again(const config::Sources& sources, const Plan& running,
                                  const std::optional<os::Ids>& client = {});

}  // namespace sallyport::session
