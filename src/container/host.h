// The container engine of a daemon: which it is, that it can hold a sandbox, and what of ours is left in it.
// Nothing is asked before the first container is wanted.
#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "container/pause_image.h"
#include "container/specs.h"
#include "engine/client.h"
#include "engine/engine.h"
#include "engine/host_config.h"
#include "os/event_loop.h"

namespace sallyport::container {

// On each container of ours.
inline constexpr char kDaemonLabel[] = "org.sallyport.daemon";    // Settings::mark
inline constexpr char kSessionLabel[] = "org.sallyport.session";  // the session's id
// Where Docker's engine listens.
inline constexpr char kDockerSocket[] = "/run/docker.sock";
// Until containers that could not be removed are tried again.
inline constexpr std::chrono::milliseconds kSweepInterval{5'000};

struct Settings {
  std::string engine_socket;
  std::string folder;  // for sessions' files; nobody else can reach it
  std::string mark;    // tells this daemon's containers from another's
};

class Host {
 public:
  Host(os::EventLoop& loop, Settings settings);
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  ~Host();

  // At a daemon's start: what one that was killed has left is taken away. Nothing is asked of the engine
  // unless there are signs of such.
  void recover();

  // Once the engine has been asked what it is, and has our image. Keep what is returned.
  [[nodiscard]] engine::Call when_ready(engine::OnDone on_ready);

  // `callback`, at the loop's next turn, unless what is returned is gone by then.
  [[nodiscard]] engine::Call later(std::function<void()> callback);

  engine::Engine& engine() { return engine_; }
  engine::Client& client() { return client_; }
  const engine::EngineInfo& info() const { return info_; }
  bool rootless() const { return info_.privilege == engine::Privilege::Rootless; }
  const std::string& pause_image() const { return pause_image_; }
  const Settings& settings() const { return settings_; }

  // Sessions whose containers are to stay.
  void add(const std::string& session) { live_.insert(session); }
  void drop(const std::string& session) {
    live_.erase(session);
    networks_.erase(session);
  }
  // Of containers whose network namespace a session holds: by whom. False: another has it.
  bool claim(const std::string& container, const std::string& session);
  void release(const std::string& container, const std::string& session);
  std::optional<std::string> session_of(const std::string& container) const;
  bool is_live(const std::string& session) const { return live_.contains(session); }
  // Whose network a process is in, by the kernel: an engine's words name what it was joined by.
  void add_network(const Fd& net, const std::string& session);
  std::optional<std::string> session_around(pid_t process) const;
  // There is a network that others may have joined meanwhile.
  void on_joinable(std::function<void()> callback) { on_joinable_ = std::move(callback); }
  void tell_joinable() {
    if (on_joinable_) on_joinable_();
  }
  // How a container is asked for.
  Dialect dialect() const;
  // The engine's own program: "docker".
  const char* command() const;
  // What a container must be like that we did not make.
  engine::Demands demands() const;

  // Removes all containers with our mark that are nobody's: those of a daemon that was killed, and those that
  // could not be removed when their session ended. Again until there are none.
  void sweep();
  void sweep_later();

 private:
  class Waiter;
  enum class State { Unknown, Asking, Ready, Looking };

  void ask();
  void on_info(const Result<engine::EngineInfo>& info);
  Status write_seccomp_file();
  std::string seccomp_file() const { return settings_.folder + "/seccomp.json"; }
  Result<PauseImage> own_pause_image();
  void look_for_pause_image();
  void import_pause_image();
  void finish(const Status& status);
  void remove_nobodys(const std::vector<engine::ListedContainer>& containers);

  os::EventLoop& loop_;
  const Settings settings_;
  engine::Client client_;
  engine::Engine engine_;
  engine::EngineInfo info_;
  std::string pause_image_;
  State state_ = State::Unknown;
  engine::Call call_;
  engine::Call recovery_;
  std::list<Waiter*> waiters_;
  std::set<std::string> live_;
  std::map<std::string, std::string> holders_;
  std::map<std::string, std::pair<dev_t, ino_t>> networks_;  // by session
  std::function<void()> on_joinable_;
  engine::Call listing_;
  std::map<std::string, engine::Call> removals_;  // by container
  std::optional<os::EventLoop::TimerId> sweep_timer_;
};

}  // namespace sallyport::container
