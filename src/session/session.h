// One sandbox's life: planned, built in namespaces of its own, probed, run, and taken down without a trace.
//
// The order of a start is the order of the functions in session.cc. Whatever fails before Go means that the
// workload never ran; whatever fails later ends it. A Session is used once, on the warden's loop.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "os/event_loop.h"
#include "os/links.h"
#include "os/netns.h"
#include "sandbox/decoys.h"
#include "sandbox/init_protocol.h"
#include "sandbox/runtime.h"
#include "sandbox/workspace_watch.h"
#include "session/commands.h"
#include "session/groundwork.h"
#include "session/plan.h"
#include "session/private_git.h"
#include "session/regrant.h"
#include "session/request.h"
#include "session/services.h"
#include "session/workspace_looks.h"

namespace sallyport::session {

class Session {
 public:
  // From the request to the running workload; and from the workload's end to the last line of the log.
  static constexpr std::chrono::milliseconds kStartLimit{30'000};
  static constexpr std::chrono::milliseconds kContainerStartLimit{120'000};
  static constexpr std::chrono::milliseconds kDrainLimit{1'000};
  // From stop() to the end of commands that do not end at its SIGTERM.
  static constexpr std::chrono::milliseconds kStopGrace{10'000};

  struct Callbacks {
    std::function<void(std::string text)> on_notice;
    std::function<void()> on_started;  // without a command of its own: it can be used
    std::function<void()> on_stopped;  // the workload stopped itself (Ctrl-Z)
    // The workload ended. Called last, as is on_failed.
    std::function<void(int exit_code, std::string summary)> on_finished;
    std::function<void(std::string text)> on_failed;
  };

  Session(os::EventLoop& loop, Gateway& gateway, Request request, std::array<Fd, 3> stdio,
          Callbacks callbacks);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const std::string& id() const { return id_; }

  void start();
  // Another command in it, once on_started was called.
  Result<Commands::Id> exec(const Command& command, const std::array<Fd, 3>& stdio,
                            Commands::Callbacks callbacks);
  Commands& commands() { return commands_; }
  // Its end, for a session without a command of its own: on_finished is called, once its commands had time to
  // end. Before it runs, on_failed.
  void stop();
  // Reads policy and operator's file again; see Regrant.
  void reload(Regrant::OnDone on_done) { regrant_.ask(std::move(on_done)); }
  // What it has done so far; nullptr before it has begun.
  const audit::Summary* summary() const { return journal_ ? &journal_->summary() : nullptr; }
  std::uint64_t credential_uses() const { return journal_ ? journal_->credential_uses() : 0; }
  std::uint64_t credentialed_uses() const { return journal_ ? journal_->credentialed_uses() : 0; }
  // A process of somebody's that has joined its network: what the sandbox was given of ours.
  Result<bool> furnish(pid_t joiner) { return runtime_ ? runtime_->furnish(joiner) : false; }
  // To the workload; before it runs a signal ends the session.
  void signal(int number);
  // Everything ends at once, for that reason, and on_failed is called.
  void abandon(std::string why) { fail_session({Reason::SessionEnded, std::move(why)}); }
  // The same for what looks like an attack: the audit log has it as an alarm.
  void raise_alarm(const std::string& why);

 private:
  // In this order. Ending: all in it is being killed. Closing: it is dead.
  enum class Phase { Planned, Closed, Doors, Usable, Running, Ending, Closing, Over };

  void make_private_clone();
  void build();
  Status prepare();
  void on_namespaces(const Status& made);
  Status start_services();
  void start_sandbox();
  Status begin_phase1(Fd control);
  Status open_doors();
  Status finish_preflight();
  Status open_packet_log();
  void go();

  bool hear_init();
  void on_init_message(const sandbox::FromInit& message);
  void on_preflight_failed(const sandbox::Failed& failed);
  Status on_phase_passed(int phase);
  void on_started(const sandbox::Started& started);
  void on_exited(const sandbox::Exited& exited);
  void on_sandbox_end(const std::string& how);
  void on_link_event();
  void lower(const std::vector<os::Link>& links);
  void look_at_workspace();
  void report(const std::vector<sandbox::Finding>& findings);
  Regrant::Planned read_files_again();

  sandbox::Terminal terminal() const {
    return request_.terminal_on_stdin ? sandbox::Terminal::Stdin : sandbox::Terminal::None;
  }
  void tell_init(const sandbox::ToInit& message, std::span<const int> fds = {});
  void proceed(const Status& status);
  void fail_session(Error error);
  void end_sandbox();
  void finish_when_drained();
  void finish();
  void bring_back_commits();
  void look_last();
  void conclude();

  os::EventLoop& loop_;
  Gateway& gateway_;
  Request request_;
  std::array<Fd, 3> stdio_;
  Callbacks callbacks_;
  Phase phase_ = Phase::Planned;
  std::string id_;

  std::optional<Plan> plan_;
  std::optional<PrivateGit> private_git_;
  bool clone_holds_work_ = false;
  std::optional<Journal> journal_;
  bool start_recorded_ = false;
  SessionCa ca_;
  std::unique_ptr<sandbox::Runtime> runtime_;
  bool has_ipv6_ = false;
  os::DoorMode door_mode_ = os::DoorMode::Redirect;
  std::optional<Services> services_;
  std::optional<sandbox::Decoys> decoys_;
  std::optional<WorkspaceLooks> workspace_looks_;
  Fd init_;  // the control socket of sallyport-init
  Commands commands_;
  Regrant regrant_;

  // What is said at the end: an exit code, or why there is none.
  int exit_code_ = 0;
  std::optional<Error> failure_;
  std::optional<os::EventLoop::TimerId> start_timer_;
  std::optional<os::EventLoop::TimerId> drain_timer_;
  std::optional<os::EventLoop::TimerId> coalesce_timer_;
  std::optional<os::EventLoop::TimerId> stop_timer_;
};

}  // namespace sallyport::session
