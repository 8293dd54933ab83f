#include "sandbox/bubblewrap.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/text.h"
#include "os/process.h"
#include "sandbox/beneath.h"
#include "sandbox/syscall_filter.h"
#include "wire/sealed.h"

namespace sallyport::sandbox {
namespace {

// bwrap's own descriptors stand behind the control socket, which sallyport-init inherits.
constexpr int kFirstOtherFd = os::kControlFd + 1;

class CallBuilder {
 public:
  void add(std::initializer_list<std::string> arguments) { call_.argv.insert(call_.argv.end(), arguments); }

  // The number under which bwrap has it.
  std::string pass(int fd) {
    const int target = next_++;
    call_.descriptors.push_back({fd, target});
    return std::to_string(target);
  }
  std::string pass_owned(Fd fd) {
    call_.owned.push_back(std::move(fd));
    return pass(call_.owned.back().get());
  }
  void pass_as(int fd, int target) { call_.descriptors.push_back({fd, target}); }

  BubblewrapCall take() { return std::move(call_); }

 private:
  BubblewrapCall call_;
  int next_ = kFirstOtherFd;
};

void add_namespaces(CallBuilder& build, const SandboxSpec& spec) {
  build.add({kBubblewrap, "--unshare-user", "--disable-userns", "--unshare-pid", "--unshare-ipc",
             "--unshare-uts", "--unshare-cgroup-try", "--die-with-parent"});
  // sallyport-init as process 1: nothing inside can kill or stop it, and its end is everything's end.
  build.add({"--as-pid-1"});
  build.add({"--uid", std::to_string(spec.ids.uid), "--gid", std::to_string(spec.ids.gid)});
  build.add({"--hostname", kHostname, "--cap-drop", "ALL"});
}

Status add_profile(CallBuilder& build, const Profile& profile) {
  build.add({"--perms", "0755", "--tmpfs", "/etc"});
  build.add({"--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys", "--dev", "/dev"});
  for (const std::string& folder : profile.private_folders) {
    const bool shared = folder == "/tmp" || folder == "/var/tmp";
    build.add({"--perms", shared ? "1777" : "0700", "--tmpfs", folder});
  }
  for (const Bind& bind : profile.read_only) build.add({"--ro-bind", bind.path, bind.path});
  for (const GeneratedFile& file : profile.files) {
    auto memory = wire::to_memfd(file.content);
    if (!memory) return fail(std::move(memory));
    build.add({"--perms", "0444", "--file", build.pass_owned(std::move(*memory)), file.path});
  }
  for (const Link& link : profile.links) build.add({"--symlink", link.target, link.path});
  return {};
}

// bwrap opens what it binds by its path, as the sandbox's uid.
bool can_be_reached_by_all(const std::filesystem::path& file) {
  std::error_code error;
  for (auto path = file; path.has_relative_path(); path = path.parent_path()) {
    if ((std::filesystem::status(path, error).permissions() & std::filesystem::perms::others_exec) ==
        std::filesystem::perms::none)
      return false;
  }
  return true;
}

// Bound, so that all sandboxes share its pages; a copy where the sandbox's uid cannot reach the folder in
// which Sallyport is installed.
Status add_init(CallBuilder& build, const SandboxSpec& spec) {
  const std::string descriptor = fmt::format("/proc/self/fd/{}", spec.init_program);
  std::error_code error;
  const auto path = std::filesystem::read_symlink(descriptor, error);
  if (!error && (!spec.become || can_be_reached_by_all(path))) {
    build.add({"--ro-bind", path.string(), kInitPath});
    return {};
  }
  // Opened anew, for an offset of its own.
  Fd program(::open(descriptor.c_str(), O_RDONLY | O_CLOEXEC));
  if (!program) return fail_errno(Reason::Internal, "open sallyport-init");
  build.add({"--perms", "0555", "--ro-bind-data", build.pass_owned(std::move(program)), kInitPath});
  return {};
}

// The user's own spelling of a mount's path, as a link to the mount. Left out where something of the profile
// or a mount is, which then decides what is there.
void add_alias(CallBuilder& build, const SandboxSpec& spec, const Mount& mount) {
  if (mount.alias.empty()) return;
  for (const char* taken :
       {"/usr", "/etc", "/proc", "/dev", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}) {
    if (is_or_lies_in(mount.alias, taken)) return;
  }
  for (const Mount& other : spec.mounts) {
    if (is_or_lies_in(mount.alias, other.path) || is_or_lies_in(other.path, mount.alias)) return;
    if (&other != &mount && !other.alias.empty() && is_or_lies_in(mount.alias, other.alias)) return;
  }
  for (const std::string& folder : spec.profile.private_folders) {
    if (is_or_lies_in(folder, mount.alias)) return;
  }
  build.add({"--symlink", mount.path, mount.alias});
}

void add_mounts(CallBuilder& build, const SandboxSpec& spec) {
  std::vector<const Mount*> ordered;
  for (const Mount& mount : spec.mounts) ordered.push_back(&mount);
  // A folder before what lies in it, which would be hidden otherwise.
  std::ranges::stable_sort(ordered, {}, [](const Mount* mount) { return mount->path.size(); });
  for (const Mount* mount : ordered) {
    const char* how = mount->access == Access::ReadOnly ? "--ro-bind" : "--bind";
    build.add({how, "/proc/self/fd/" + build.pass(mount->source.get()), mount->path});
  }
  for (const Mount* mount : ordered) add_alias(build, spec, *mount);
}

Status check(const SandboxSpec& spec) {
  if (spec.ids.uid == 0 || spec.ids.gid == 0) {
    return fail(Reason::Internal, "a sandbox never runs as uid or gid 0: it could become root of the host");
  }
  if (spec.user_namespace < 0 || spec.net_namespace < 0) {
    return fail(Reason::Internal, "a sandbox without namespaces of its own is not started");
  }
  if (spec.mounts.empty() || spec.mounts.size() > kMaxMounts) {
    return fail(Reason::BadRequest, fmt::format("a sandbox has 1 to {} mounts", kMaxMounts));
  }
  if (spec.terminal == Terminal::Stdin && ::isatty(spec.stdio[0]) == 0) {
    return fail(Reason::Internal, "the sandbox's stdin is no terminal");
  }
  return {};
}

}  // namespace

Result<BubblewrapCall> bubblewrap_call(const SandboxSpec& spec) {
  if (const auto checked = check(spec); !checked) return fail(Result<void>(checked));
  CallBuilder build;
  for (int i = 0; i < 3; ++i) build.pass_as(spec.stdio[static_cast<std::size_t>(i)], i);
  build.pass_as(spec.control, os::kControlFd);

  add_namespaces(build, spec);
  if (const auto added = add_profile(build, spec.profile); !added) return fail(Result<void>(added));
  if (const auto added = add_init(build, spec); !added) return fail(Result<void>(added));
  add_mounts(build, spec);
  // What was only made to hold the mounts is not for writing.
  build.add({"--remount-ro", "/etc", "--remount-ro", "/"});

  auto filter = syscall_filter();
  if (!filter) return fail(std::move(filter));
  build.add({"--seccomp", build.pass_owned(std::move(*filter))});
  build.add({"--chdir", "/", "--", kInitPath, std::to_string(os::kControlFd)});
  return build.take();
}

Result<os::Child> start_sealed(const SealedSpec& spec) {
  if (spec.ids.uid == 0 || spec.ids.gid == 0) {
    return fail(Reason::Internal, "a sealed command never runs as uid or gid 0");
  }
  CallBuilder build;
  for (int i = 0; i < 3; ++i) build.pass_as(spec.stdio[static_cast<std::size_t>(i)], i);
  build.add({kBubblewrap, "--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--uid",
             std::to_string(spec.ids.uid), "--gid", std::to_string(spec.ids.gid), "--hostname", kHostname,
             "--cap-drop", "ALL", "--clearenv"});
  for (const std::string& variable : spec.environment) {
    const std::size_t equals = variable.find('=');
    build.add({"--setenv", variable.substr(0, equals), variable.substr(equals + 1)});
  }
  if (const auto added = add_profile(build, spec.profile); !added) return fail(Result<void>(added));
  for (const Mount& mount : spec.mounts) {
    const char* how = mount.access == Access::ReadOnly ? "--ro-bind" : "--bind";
    build.add({how, "/proc/self/fd/" + build.pass(mount.source.get()), mount.path});
  }
  build.add({"--remount-ro", "/etc", "--remount-ro", "/"});
  auto filter = syscall_filter();
  if (!filter) return fail(std::move(filter));
  build.add({"--seccomp", build.pass_owned(std::move(*filter)), "--chdir", "/", "--"});
  BubblewrapCall call = build.take();
  call.argv.insert(call.argv.end(), spec.argv.begin(), spec.argv.end());
  return os::spawn({.program = kBubblewrap,
                    .argv = call.argv,
                    .environment = {},
                    .descriptors = call.descriptors,
                    .become = spec.become,
                    .working_directory = "/",
                    .parent_death_signal = SIGKILL,
                    .grouping = os::Grouping::NewSession});
}

os::SpawnSpec spawn_spec(const SandboxSpec& spec, const BubblewrapCall& call) {
  return {
      .program = kBubblewrap,
      .argv = call.argv,
      .environment = {},
      .descriptors = call.descriptors,
      .become = spec.become,
      .user_namespace = spec.user_namespace,
      .net_namespace = spec.net_namespace,
      // bwrap ties what it starts to its own life only after some steps, and is itself tied to the warden's.
      .pid_namespace = os::PidNamespace::Own,
      .working_directory = "/",
      .parent_death_signal = SIGKILL,
  };
}

Result<os::Child> start_bubblewrap(const SandboxSpec& spec) {
  auto call = bubblewrap_call(spec);
  if (!call) return fail(std::move(call));
  if (::access(kBubblewrap, X_OK) != 0) {
    return fail(Reason::Internal, std::string(kBubblewrap) + " is not there; install the package bubblewrap");
  }
  return os::spawn(spawn_spec(spec, *call));
}

}  // namespace sallyport::sandbox
