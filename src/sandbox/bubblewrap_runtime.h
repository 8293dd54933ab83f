// A sandbox under bubblewrap: sallyport-netns makes its namespaces, bwrap what is in them.
#pragma once

#include <optional>
#include <utility>

#include "os/event_loop.h"
#include "os/process.h"
#include "os/spawn.h"
#include "sandbox/runtime.h"

namespace sallyport::sandbox {

class BubblewrapRuntime final : public Runtime {
 public:
  // `ids`: whom it runs as. `become`: the same when the warden is root.
  BubblewrapRuntime(os::EventLoop& loop, os::Ids ids, std::optional<os::Ids> become, OnEnd on_end)
      : Runtime(std::move(on_end)), loop_(loop), ids_(std::move(ids)), become_(std::move(become)) {}
  ~BubblewrapRuntime() override;

  void make_namespaces(OnNamespaces on_made) override;
  void start(const Contents& contents, OnInit on_init) override;
  Result<os::Doors> open_doors(const std::optional<Rate>& new_connections) override;
  bool kill() override;
  Users users() const override { return Users::Own; }

 private:
  Status build_namespaces();
  Result<Fd> start_sandbox(const Contents& contents);
  void on_child_end();

  os::EventLoop& loop_;
  os::Ids ids_;
  std::optional<os::Ids> become_;
  std::optional<os::NamespaceBuilder> builder_;
  std::optional<os::Child> child_;
};

}  // namespace sallyport::sandbox
