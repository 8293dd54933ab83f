// For tests: a real sandbox, as the warden would start it, with places to tamper with it on the way.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "os/netns.h"
#include "sandbox/bubblewrap.h"
#include "sandbox/decoys.h"
#include "sandbox/folder_test.h"
#include "sandbox/init_protocol.h"
#include "sandbox/runtime.h"

namespace sallyport::sandbox {

class Trial {
 public:
  // Namespaces, profile and a workspace; nothing is started yet. Throws what goes wrong.
  Trial();
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;
  ~Trial();

  // To be changed before start().
  std::vector<Mount> mounts;  // the workspace first
  SandboxSpec spec;           // its mounts are these, whatever it says
  Phase1 phase1;
  Workload workload;
  std::function<void(BubblewrapCall&, os::SpawnSpec&)> tamper;

  const std::string& folder() const { return folder_.path(); }
  const std::string& workspace() const { return mounts.front().path; }
  const os::Namespace& space() const { return space_; }
  const Decoys& decoys() const { return *decoys_; }
  os::Ids ids() const { return spec.ids; }

  void start();
  // The answer to phase 1, nullopt when it passed.
  std::optional<Failed> run_phase1();
  // Opens the doors, with a door in a thread that answers with `answer` (the right line when empty).
  std::optional<Failed> run_phase2(std::string answer = {});
  // start() and both phases, then the workload; returns after Started.
  void go();
  void send(const ToInit& message);
  // Another command, whose outputs come to output() unless `terminal` is a pty's slave.
  void exec(CommandId command, std::vector<std::string> argv, int terminal = -1);
  FromInit receive();
  // As a warden that dies.
  void hang_up() { control_.reset(); }
  // The whole thing: the workload's end, and what it wrote to stdout and stderr.
  Exited finish();
  std::string output() const;
  // How bwrap ended.
  os::ExitStatus wait();

 private:
  void serve_door(std::string answer);

  TestFolder folder_;
  std::optional<os::NamespaceBuilder> builder_;
  os::Namespace space_;
  os::Doors doors_;
  std::optional<Decoys> decoys_;
  Fd init_program_;
  Fd null_;
  Fd output_;
  Fd control_;
  Fd init_end_;
  Fd stop_read_;
  Fd stop_write_;
  std::optional<os::Child> child_;
  std::thread door_;
};

// Runs `body` in a child process; what it returns, "" being success.
std::string in_child(const std::function<std::string()>& body);

// A Unix socket that listens at this path. Throws what goes wrong.
Fd listen_at(const std::string& path);

// The master of a terminal with 24 lines of 80 columns, to make others alike.
Fd open_pty_like_80x24();

// Runs a shell script in a fresh sandbox.
struct Outcome {
  Exited exited;
  std::string output;
};
Outcome run_script(const std::string& script);

}  // namespace sallyport::sandbox
