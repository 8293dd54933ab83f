// One container of ours, from the engine's making of it to its removal. That the process which came to our
// socket is the container's first one is what everything else is built upon.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <string>

#include "base/fd.h"
#include "container/host.h"
#include "engine/container.h"
#include "engine/container_state.h"
#include "os/event_loop.h"
#include "os/packet_listener.h"

namespace sallyport::container {

// Until Podman has seen that a container's first process was killed.
inline constexpr std::chrono::milliseconds kDeathSeenLimit{10'000};
// How often an engine that refuses to remove a container is asked again at once, and the pause between.
inline constexpr int kMaxRemovalTries = 20;
inline constexpr std::chrono::milliseconds kRemovalInterval{100};

class Member {
 public:
  using OnReady = std::function<void(Result<engine::ContainerState>)>;

  // `on_death`: of its first process, after it was ready; once.
  Member(os::EventLoop& loop, Host& host, std::string name, std::function<void()> on_death)
      : loop_(loop), host_(host), name_(std::move(name)), on_death_(std::move(on_death)) {}
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;
  // Kills it, and leaves its removal to the host.
  ~Member();

  // Made, started, and with its sallyport-init at the socket `socket`, which appears for that; and then what
  // the engine says of it is what the kernel says, and as sealed as was asked for. Its first process is in
  // the network namespace `net`, unless that is -1. Once; the answer comes later. `on_starting`, before it:
  // the engine was asked to start it, which takes it a while.
  void launch(const engine::ContainerSpec& spec, const std::string& socket, int net, OnReady on_ready,
              std::function<void()> on_starting = nullptr);
  // Killed, if it runs; it answers no more, and end() comes later.
  void doom();
  // Killed and removed, whatever became of launch(), whose answer does not come any more. `on_gone` comes
  // later; also when the engine does not do it, which the host then tries again.
  void end(std::function<void()> on_gone);

  const std::string& name() const { return name_; }
  // Set once the engine has made it.
  const std::string& id() const { return id_; }
  // The connection to its sallyport-init. Once.
  Fd take_control() { return std::move(accepted_.connection); }
  // Of its first process, which is proved to be alive.
  Result<Fd> open_namespace(const char* kind) const;

 private:
  template <class T>
  engine::On<T> then(void (Member::*next)(T));
  void ask(engine::Call call);

  void on_created(std::string id);
  void on_started();
  void on_connection();
  void on_early_end(const Result<std::int64_t>& exit_code);
  void inspect_when_there();
  void on_inspected(engine::ContainerState state);
  Status check(const engine::ContainerState& state) const;
  Status check_namespace() const;
  void answer(Result<engine::ContainerState> answer);
  void on_process_end();
  bool alive() const;
  void kill();
  void remove();
  void remove_now(int tries);

  os::EventLoop& loop_;
  Host& host_;
  std::string name_;
  std::function<void()> on_death_;
  OnReady on_ready_;
  std::function<void()> on_starting_;
  std::function<void()> on_gone_;

  std::string id_;
  int net_ = -1;
  std::set<std::string> sources_;  // of its mounts
  std::optional<os::PacketListener> listener_;
  os::PacketListener::Accepted accepted_;
  bool watched_ = false;  // its pidfd
  bool started_ = false;
  bool launched_ = false;  // something may have been made
  bool gone_ = false;
  engine::Call call_;
  bool asking_ = false;
  engine::Call early_end_;
  std::optional<os::EventLoop::TimerId> patience_;
};

}  // namespace sallyport::container
