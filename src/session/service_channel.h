// What one session and a gate or vault have to say to each other, over a socket of its own. It lasts as long
// as the session: when the process dies, or gives the session up, another is opened for it.
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
#include "os/unix_socket.h"
#include "session/service_process.h"

namespace sallyport::session {

class ServiceChannel {
 public:
  // Messages that wait for a process that is busy; it is not read from meanwhile, so they are few.
  static constexpr std::size_t kMaxQueued = 64;
  static constexpr int kMaxPacketsPerTurn = 32;
  // A process that takes none of them for so long, or does not end a session, is as good as dead: it is
  // killed, and restarted.
  static constexpr std::chrono::seconds kMaxDeaf{10};
  static constexpr std::chrono::seconds kMaxLastWords{2};

  struct Callbacks {
    // The process has the session, for the first time or again: tell it everything it needs to know.
    std::function<void()> on_start;
    std::function<void(os::Packet)> on_packet;
    // It died, or gave the session up; on_start is on its way. `how`: "sallyport-gate died (signal 9)".
    std::function<void(const std::string& how)> on_death;
    // It died too often, or cannot be started.
    std::function<void(Error)> on_failure;
  };

  // The process outlives this.
  ServiceChannel(os::EventLoop& loop, ServiceProcess& process, Callbacks callbacks);
  ~ServiceChannel();
  ServiceChannel(const ServiceChannel&) = delete;
  ServiceChannel& operator=(const ServiceChannel&) = delete;

  // Of a process that was started. Now, or when it has been started again.
  void open();
  // In order, at once or when there is room; nothing while there is no connection, or after end(). The
  // descriptors stay the caller's.
  void send(std::string_view message, std::span<const int> fds = {});
  // Has the session ended there, and calls back when nothing of it is left.
  void end(std::function<void()> on_ended);
  // The same, for a session that is over: what was still to be said is heard, for kMaxLastWords at most.
  void finish(std::function<void()> on_finished);
  // The same, without a word.
  void close();
  bool running() const { return static_cast<bool>(socket_); }

 private:
  friend class ServiceProcess;
  struct Message {
    std::string bytes;
    std::vector<Fd> fds;
  };

  // From the process: it is there (again), it is gone, or for good.
  void connect();
  void lost(const std::string& how);
  void give_up(Error error);

  // For when there is room.
  Status queue(std::string_view message, std::span<const int> fds);
  void listen();
  void flush();
  void on_readable();
  void on_end();
  void hang_up(std::function<void()> on_ended, std::chrono::seconds limit, std::function<void()> at_limit);
  void disconnect();
  void cancel(std::optional<os::EventLoop::TimerId>& timer);

  os::EventLoop& loop_;
  ServiceProcess& process_;
  Callbacks callbacks_;
  Fd socket_;
  std::deque<Message> queue_;  // not empty: deaf_timer_ runs
  std::function<void()> on_ended_;
  bool finishing_ = false;
  std::optional<os::EventLoop::TimerId> deaf_timer_;
  int given_up_ = 0;  // times
  std::optional<os::EventLoop::TimerId> retry_timer_;
};

}  // namespace sallyport::session
