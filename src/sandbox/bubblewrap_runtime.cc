#include "sandbox/bubblewrap_runtime.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>

#include <utility>

#include "os/unix_socket.h"
#include "sandbox/bubblewrap.h"

namespace sallyport::sandbox {

BubblewrapRuntime::~BubblewrapRuntime() {
  if (!child_) return;
  loop_.unwatch(child_->pidfd.get());
  (void)os::kill_child(*child_, SIGKILL);
  (void)os::wait_child(*child_);
}

void BubblewrapRuntime::make_namespaces(OnNamespaces on_made) {
  on_made(build_namespaces());
}

Status BubblewrapRuntime::build_namespaces() {
  auto helper = os::find_own_program("sallyport-netns");
  if (!helper) return fail(std::move(helper));
  auto builder = os::NamespaceBuilder::start({.helper = *helper, .become = become_});
  if (!builder) return fail(std::move(builder));
  builder_.emplace(std::move(*builder));
  auto namespaces = builder_->namespaces();
  if (!namespaces) return fail(std::move(namespaces));
  namespaces_ = std::move(*namespaces);
  return {};
}

void BubblewrapRuntime::start(const Contents& contents, OnInit on_init) {
  on_init(start_sandbox(contents));
}

Result<Fd> BubblewrapRuntime::start_sandbox(const Contents& contents) {
  auto path = os::find_own_program("sallyport-init");
  if (!path) return fail(std::move(path));
  const Fd program(::open(path->c_str(), O_PATH | O_CLOEXEC));
  if (!program) return fail_errno(Reason::Internal, *path);
  auto control = os::socket_pair(os::SocketKind::Packet);
  if (!control) return fail(std::move(control));
  auto child = start_bubblewrap({.ids = ids_,
                                 .become = become_,
                                 .user_namespace = namespaces_.user.get(),
                                 .net_namespace = namespaces_.net.get(),
                                 .profile = make_profile(contents.profile),
                                 .mounts = contents.mounts,
                                 .stdio = contents.stdio,
                                 .terminal = contents.terminal,
                                 .init_program = program.get(),
                                 .control = control->second.get()});
  if (!child) return fail(std::move(child));
  child_ = std::move(*child);
  loop_.watch(child_->pidfd.get(), POLLIN, [this](short) { on_child_end(); });
  return std::move(control->first);
}

Result<os::Doors> BubblewrapRuntime::open_doors(const std::optional<Rate>& new_connections) {
  auto doors = builder_->open_doors(os::DoorWish::Redirect, new_connections);
  builder_.reset();
  return doors;
}

// bubblewrap is the first process of a namespace: with it everything in the sandbox is killed.
bool BubblewrapRuntime::kill() {
  if (!child_) return false;
  (void)os::kill_child(*child_, SIGKILL);
  return true;
}

void BubblewrapRuntime::on_child_end() {
  const auto status = os::wait_child(*child_);
  loop_.unwatch(child_->pidfd.get());
  child_.reset();
  on_end_(fmt::format("{}: bubblewrap, or sallyport-init in it",
                      status ? status->text() : status.error().detail));
}

}  // namespace sallyport::sandbox
