// A sandbox in containers of an engine. A pause holds the network namespace, which the warden has opened and
// watches before anything else is in it; the image's container joins it with sallyport-init as its first
// process, which proves from inside that it is one of ours, and runs nothing of the image before.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "container/host.h"
#include "container/member.h"
#include "container/session_folder.h"
#include "container/specs.h"
#include "os/netns.h"
#include "sandbox/runtime.h"

namespace sallyport::container {

class ContainerRuntime final : public sandbox::Runtime {
 public:
  struct Wish {
    std::string session;  // its id
    std::string image;
    os::Ids ids;
    std::string home;
    Limits limits;
    std::vector<std::string> set_environment;  // NAME=VALUE that the user asked for
  };

  // The host outlives this.
  ContainerRuntime(os::EventLoop& loop, Host& host, Wish wish, OnEnd on_end);
  ~ContainerRuntime() override;

  void make_namespaces(OnNamespaces on_made) override;
  void start(const sandbox::Contents& contents, OnInit on_init) override;
  Result<os::Doors> open_doors(const std::optional<Rate>& new_connections) override;
  bool kill() override;
  sandbox::Users users() const override {
    return host_.rootless() ? sandbox::Users::Own : sandbox::Users::Hosts;
  }
  std::vector<std::string> environment(std::vector<std::string> ours) const override;
  std::string identity() const override { return identity_; }
  std::string notice() const override;

 private:
  void on_host_ready();
  Status make_pause();
  void on_pause(const Result<engine::ContainerState>& state);
  Result<engine::ContainerSpec> workload(const sandbox::Contents& contents) const;
  Status check_volumes(const std::vector<sandbox::Mount>& mounts) const;
  void on_workload(const Result<engine::ContainerState>& state);
  void fall(const std::string& how);
  void end(std::string how);
  void on_gone();
  std::map<std::string, std::string> labels() const;

  Host& host_;
  Wish wish_;
  OnNamespaces on_made_;
  OnInit on_init_;

  engine::ImageState image_;
  std::optional<SessionFolder> folder_;
  Member pause_;
  Member workload_;
  engine::Call call_;
  std::optional<os::NamespaceBuilder> builder_;
  std::string identity_;

  bool engaged_ = false;  // something may have been made
  bool ending_ = false;
  bool over_ = false;
  std::string how_;
};

}  // namespace sallyport::container
