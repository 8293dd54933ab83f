// A container that somebody else made and started: it runs already, sealed, and waits. It is judged, its
// network namespace entered and shut, and a container of ours joins that namespace, from which sallyport-init
// proves that it is one of ours. The session's end is the container's end, and the other way round.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "container/adoptee.h"
#include "container/host.h"
#include "container/member.h"
#include "container/session_folder.h"
#include "os/mount_over.h"
#include "os/netns.h"
#include "sandbox/runtime.h"

namespace sallyport::container {

class AdoptedRuntime final : public sandbox::Runtime {
 public:
  struct Wish {
    std::string session;    // its id
    std::string container;  // by name or id
    os::Ids ids;            // of our own container there
  };

  // The host outlives this.
  AdoptedRuntime(os::EventLoop& loop, Host& host, Wish wish, OnEnd on_end);
  ~AdoptedRuntime() override;

  void make_namespaces(OnNamespaces on_made) override;
  void start(const sandbox::Contents& contents, OnInit on_init) override;
  Result<os::Doors> open_doors(const std::optional<Rate>& new_connections) override;
  bool kill() override;
  sandbox::Users users() const override { return sandbox::Users::Hosts; }
  std::string identity() const override { return identity_; }
  Result<bool> furnish(pid_t joiner) override;

 private:
  void on_adoptee(const Status& adopted);
  Status launch_prober();
  Status enter();
  Status write_files(const sandbox::Contents& contents);
  void on_prober(const Result<engine::ContainerState>& state);
  void hand_over();
  void fall(const std::string& how);
  void end(std::string how);
  void on_gone();

  Host& host_;
  Wish wish_;
  OnNamespaces on_made_;
  OnInit on_init_;

  std::optional<SessionFolder> folder_;
  Fd net_;
  std::vector<os::MountOver> files_;
  Adoptee adoptee_;
  Member prober_;
  std::optional<Status> proved_;  // what became of the prober's start
  engine::Call call_;
  std::optional<os::NamespaceBuilder> builder_;
  std::string identity_;

  bool engaged_ = false;
  int left_ = 0;  // containers that are still to end, since end()
  bool over_ = false;
  std::string how_;
};

}  // namespace sallyport::container
