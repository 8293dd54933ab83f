// One of our own confined processes, gate or vault, that serves sessions: started with its control socket as
// descriptor 3, watched, and started again with back-off when it dies. What a session has to say to it goes
// over a ServiceChannel.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "base/fd.h"
#include "os/event_loop.h"
#include "os/process.h"
#include "os/spawn.h"

namespace sallyport::session {

class ServiceChannel;

class ServiceProcess {
 public:
  // Restarts in a row; a process that keeps dying ends its sessions, and is started again for others.
  static constexpr int kMaxRestarts = 10;
  // One that lived for so long begins a new row.
  static constexpr std::chrono::seconds kStable{60};
  // The wait before the first restart; doubles with each one, up to the limit.
  static constexpr std::chrono::milliseconds kFirstBackOff{50};
  static constexpr std::chrono::milliseconds kLongestBackOff{2'000};

  ServiceProcess(os::EventLoop& loop, std::string program_name);
  // Its channels are closed by then.
  ~ServiceProcess();
  ServiceProcess(const ServiceProcess&) = delete;
  ServiceProcess& operator=(const ServiceProcess&) = delete;

  // Nothing, when it was started before. `become`: handed to the program as --uid and --gid, which it takes
  // on when it confines itself. `system_roots`: as wire::ServiceStart says.
  Status start(std::optional<os::Ids> become, bool system_roots);
  // Kills it for good.
  void stop();

  bool running() const { return child_.has_value(); }
  const std::string& name() const { return program_name_; }
  std::uint64_t deaths() const { return deaths_; }

  static std::chrono::milliseconds back_off(int restarts);

 private:
  friend class ServiceChannel;

  // It is as good as dead.
  void kill();
  // The other end of a new session's socket goes to it. SessionEnded when it has died just now.
  Result<Fd> open_session();

  Status launch();
  void died();
  void restart_later();
  // Kills and reaps it, if it has not ended; how it ended.
  std::string forget();

  os::EventLoop& loop_;
  std::string program_name_;
  std::optional<os::Ids> become_;
  bool system_roots_ = false;
  bool started_ = false;
  std::optional<os::Child> child_;
  os::EventLoop::Clock::time_point launched_;
  Fd control_;
  std::set<ServiceChannel*> channels_;  // each its owner's
  std::uint64_t deaths_ = 0;
  int restarts_ = 0;  // in a row
  std::optional<os::EventLoop::TimerId> restart_timer_;
};

}  // namespace sallyport::session
