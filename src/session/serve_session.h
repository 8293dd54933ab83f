// One session on the host: gate and vault with doors on loopback addresses, and no sandbox. For whoever keeps
// clients apart by other means, and for tests and benchmarks.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "os/event_loop.h"
#include "session/ca_file.h"
#include "session/grant_plan.h"
#include "session/groundwork.h"
#include "session/regrant.h"
#include "session/serve_request.h"
#include "session/services.h"

namespace sallyport::session {

class ServeSession {
 public:
  struct Callbacks {
    std::function<void(std::string text)> on_notice;
    // The doors are open: ADDRESS:PORT of each that was asked for, in that order.
    std::function<void(std::vector<std::string> addresses)> on_ready;
    // After reload(): "", and the files are in force as they are now; or why those that were read before
    // stay.
    std::function<void(std::string problem)> on_reloaded;
    // Called last, as is on_failed.
    std::function<void(std::string summary)> on_finished;
    std::function<void(std::string text)> on_failed;
  };

  ServeSession(os::EventLoop& loop, Gateway& gateway, ServeRequest request, Callbacks callbacks);
  ~ServeSession();
  ServeSession(const ServeSession&) = delete;
  ServeSession& operator=(const ServeSession&) = delete;

  void start();
  // Reads both files again, as strictly as at the start. What they say now takes force for everything that
  // begins, and ends what they do not allow any more; when they cannot be used the grant stays as it is. One
  // that is asked for while another is under way follows it.
  void reload();
  // As the user wishes.
  void end();
  // The user is gone.
  void abandon();

 private:
  Status prepare();
  Status write_ca_file();
  void go();
  void fail_session(Error error);
  void finish();
  void conclude();

  os::EventLoop& loop_;
  Gateway& gateway_;
  ServeRequest request_;
  Callbacks callbacks_;
  std::string id_;
  GrantPlan plan_;
  SessionCa ca_;
  std::optional<CaFile> ca_file_;
  HostDoors doors_;  // until they are opened
  std::vector<std::string> addresses_;
  std::optional<Journal> journal_;
  std::optional<Services> services_;
  std::optional<os::EventLoop::TimerId> coalesce_timer_;
  bool start_recorded_ = false;
  Regrant regrant_;
  bool over_ = false;
  std::optional<Error> failure_;
};

}  // namespace sallyport::session
