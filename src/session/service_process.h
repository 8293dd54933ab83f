// One of our own confined processes, gate or vault: started with its control socket as descriptor 3, watched,
// and started again with back-off when it dies.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "os/event_loop.h"
#include "os/process.h"
#include "os/spawn.h"
#include "os/unix_socket.h"

namespace sallyport::session {

class ServiceProcess {
 public:
  // Restarts within one session; a process that keeps dying ends it.
  static constexpr int kMaxRestarts = 10;
  // The wait before the first restart; doubles with each one, up to the limit.
  static constexpr std::chrono::milliseconds kFirstBackOff{50};
  static constexpr std::chrono::milliseconds kLongestBackOff{2'000};
  // Messages that wait for a process that is busy; it is not read from meanwhile, so they are few.
  static constexpr std::size_t kMaxQueued = 64;
  static constexpr int kMaxPacketsPerTurn = 32;
  // A process that takes none of them for so long is as good as dead: it is killed, and restarted.
  static constexpr std::chrono::seconds kMaxDeaf{10};

  struct Callbacks {
    // The process runs, for the first time or again: tell it everything it needs to know.
    std::function<void()> on_start;
    std::function<void(os::Packet)> on_packet;
    // It died; a restart is on its way. `how`: "sallyport-gate died (signal 9)".
    std::function<void(const std::string& how)> on_death;
    // It died too often, or cannot be started.
    std::function<void(Error)> on_failure;
  };

  // `become`: handed to the program as --uid and --gid, which it takes on when it confines itself.
  ServiceProcess(os::EventLoop& loop, std::string program_name, std::optional<os::Ids> become,
                 Callbacks callbacks);
  ~ServiceProcess();
  ServiceProcess(const ServiceProcess&) = delete;
  ServiceProcess& operator=(const ServiceProcess&) = delete;

  Status start();
  // In order, at once or when there is room. The descriptors stay the caller's.
  void send(std::string_view message, std::span<const int> fds = {});
  // Kills it for good.
  void stop();
  bool running() const { return child_.has_value(); }

 private:
  struct Message {
    std::string bytes;
    std::vector<Fd> fds;
  };

  // For when there is room.
  Status queue(std::string_view message, std::span<const int> fds);
  void listen();
  void flush();
  void on_readable();
  void died();
  // Kills and reaps it, if it has not ended; how it ended.
  std::string forget();

  os::EventLoop& loop_;
  std::string program_name_;
  std::optional<os::Ids> become_;
  Callbacks callbacks_;
  std::optional<os::Child> child_;
  Fd control_;
  std::deque<Message> queue_;  // not empty: deaf_timer_ runs
  std::optional<os::EventLoop::TimerId> deaf_timer_;
  int restarts_ = 0;
  std::optional<os::EventLoop::TimerId> restart_timer_;
};

}  // namespace sallyport::session
