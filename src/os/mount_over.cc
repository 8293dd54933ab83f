#include "os/mount_over.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "base/text.h"
#include "os/netns_helper.h"
#include "os/spawn.h"
#include "os/unix_socket.h"

namespace sallyport::os {
namespace {

// Of the helper, which only makes a few system calls.
constexpr std::chrono::milliseconds kMountOverTimeout{10'000};
constexpr std::string_view kFailed = "failed ";

// A mount of its own that is nowhere yet.
Result<Fd> detached(const std::string& source) {
  Fd tree(static_cast<int>(
      ::syscall(SYS_open_tree, AT_FDCWD, source.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)));
  if (!tree) return fail_errno(Reason::Internal, "open_tree " + source);
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
  if (::syscall(SYS_mount_setattr, tree.get(), "", AT_EMPTY_PATH, &attributes, sizeof attributes) != 0) {
    return fail_errno(Reason::Internal, "mount_setattr " + source);
  }
  return tree;
}

// False: nothing is there.
Result<bool> attach(const Fd& tree, const std::string& target) {
  if (::syscall(SYS_move_mount, tree.get(), "", AT_FDCWD, target.c_str(), MOVE_MOUNT_F_EMPTY_PATH) == 0)
    return true;
  if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == EINVAL) return false;
  return fail_errno(Reason::Internal, "mount over " + target);
}

}  // namespace

namespace {

Result<std::string> mount_all(const std::vector<std::string>& arguments) {
  std::vector<std::pair<Fd, std::string>> trees;
  for (std::size_t i = 1; i + 1 < arguments.size(); i += 2) {
    auto tree = detached(arguments[i]);
    if (!tree) return fail(std::move(tree));
    trees.emplace_back(std::move(*tree), arguments[i + 1]);
  }
  if (::setns(kMountNamespaceFd, CLONE_NEWNS) != 0) {
    return fail_errno(Reason::Internal, "enter the container's mount namespace");
  }
  std::string done = "mounted";
  for (const auto& [tree, target] : trees) {
    auto attached = attach(tree, target);
    if (!attached) return fail(std::move(attached));
    if (*attached) done += '\n' + target;
  }
  return done;
}

}  // namespace

Status serve_mount_over(int control, const std::vector<std::string>& arguments) {
  const auto done = mount_all(arguments);
  const Status sent = send_packet(control, done ? *done : std::string(kFailed) + done.error().detail);
  return done ? sent : std::unexpected(done.error());
}

Result<std::vector<std::string>> mount_over(const std::string& helper, const Fd& mount_namespace,
                                            const std::vector<MountOver>& files) {
  auto ends = socket_pair(SocketKind::Packet);
  if (!ends) return fail(std::move(ends));
  std::vector<std::string> argv{"sallyport-netns", kMountOver};
  for (const MountOver& file : files) {
    argv.push_back(file.source);
    argv.push_back(file.target);
  }
  auto child = spawn(
      {.program = helper,
       .argv = argv,
       .environment = {},
       .descriptors = {{ends->second.get(), kHelperControlFd}, {mount_namespace.get(), kMountNamespaceFd}},
       .working_directory = "/",
       .parent_death_signal = SIGKILL});
  if (!child) return fail(std::move(child));
  ends->second.reset();
  auto answer = recv_packet_within(ends->first.get(), kMountOverTimeout);
  (void)kill_child(*child, SIGKILL);
  (void)wait_child(*child);
  if (!answer) return fail(std::move(answer));
  if (answer->end) return fail(Reason::ProcessDied, "sallyport-netns died");
  if (answer->bytes.starts_with(kFailed)) return fail(Reason::Internal, answer->bytes.substr(kFailed.size()));
  auto lines = split(answer->bytes, '\n');
  return std::vector<std::string>(lines.begin() + 1, lines.end());
}

}  // namespace sallyport::os
