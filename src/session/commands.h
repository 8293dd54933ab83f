// The commands that run in one sandbox beside its own: each started through sallyport-init with descriptors
// of its caller's, signalled, and followed to its end.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "sandbox/init_protocol.h"

namespace sallyport::session {

struct Command {
  std::vector<std::string> argv;
  std::vector<std::string> environment;  // NAME=VALUE, besides the sandbox's own
  std::string cwd;                       // inside; "" is the workspace
  sandbox::Terminal terminal = sandbox::Terminal::None;
};

class Commands {
 public:
  using Id = sandbox::CommandId;

  struct Callbacks {
    std::function<void()> on_started;
    // One of these two is the last. As a shell gives it; and why there is no exit code.
    std::function<void(int exit_code)> on_exited;
    std::function<void(const Error&)> on_failed;
  };

  // To sallyport-init.
  using Send = std::function<Status(const sandbox::ToInit&, std::span<const int> fds)>;

  explicit Commands(Send send) : send_(std::move(send)) {}

  // What every command gets: the sandbox's environment, and its workspace.
  void set_defaults(std::vector<std::string> environment, std::string cwd);

  // The descriptors may be closed afterwards. An error is for the caller's eyes; nothing was started then.
  Result<Id> start(const Command& command, const std::array<Fd, 3>& stdio, Callbacks callbacks);
  // A signal of sandbox::is_forwarded(), or SIGKILL; to none that has ended.
  void signal(Id id, int number);
  void signal_all(int number);

  void hear(const sandbox::Started& started);
  void hear(const sandbox::Refused& refused);
  void hear(const sandbox::Exited& exited);
  // The sandbox has ended, and all in it.
  void end_all(const Error& why);

  std::size_t running() const { return commands_.size(); }
  // Called each time that the last one has ended.
  void when_none_runs(std::function<void()> callback) { when_none_runs_ = std::move(callback); }

 private:
  void end(std::map<Id, Callbacks>::iterator command, const std::function<void(const Callbacks&)>& tell);

  Send send_;
  std::vector<std::string> environment_;
  std::string cwd_;
  Id next_ = 1;
  std::map<Id, Callbacks> commands_;
  std::function<void()> when_none_runs_;
};

}  // namespace sallyport::session
