#include "session/diagnosis.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/text.h"
#include "os/netns.h"
#include "os/safe_path.h"
#include "os/userns.h"
#include "sandbox/bubblewrap.h"

namespace sallyport::session {
namespace {

constexpr std::chrono::seconds kSealedTrialLimit{20};
constexpr std::size_t kMaxTrialWordsBytes = std::size_t{16} * 1024;
// What a build in a sandbox easily needs.
constexpr rlim_t kFewProcesses = 256;
constexpr rlim_t kFewFiles = 1024;

Diagnosis ok(std::string detail) {
  return {.health = Health::Ok, .detail = std::move(detail)};
}
Diagnosis broken(std::string detail, std::string remedy = "") {
  return {.health = Health::Broken, .detail = std::move(detail), .remedy = std::move(remedy)};
}
Diagnosis missing(std::string detail, std::string remedy) {
  return {.health = Health::Missing, .detail = std::move(detail), .remedy = std::move(remedy)};
}

Result<os::NamespaceBuilder> start_builder(const Identities& identities) {
  auto helper = os::find_own_program("sallyport-netns");
  if (!helper) return fail(std::move(helper));
  return os::NamespaceBuilder::start({.helper = *helper, .become = identities.become_sandbox});
}

std::string number_of(const char* sysctl) {
  return std::string(trimmed(split(os::read_sysctl(sysctl).value_or("unknown"), '\n').front()));
}

// `what` is "" when there is no limit, or enough.
std::string too_few(decltype(RLIMIT_NOFILE) resource, rlim_t few, const char* what) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_max >= few) return "";
  return fmt::format("only {} {}", limit.rlim_max, what);
}

std::string text_of_limit(decltype(RLIMIT_NOFILE) resource) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0) return "unknown";
  return limit.rlim_max == RLIM_INFINITY ? "unlimited" : fmt::format("{}", limit.rlim_max);
}

// How the sealed command ended; `words` is what it and bubblewrap said.
Result<os::ExitStatus> run_sealed(const Identities& identities, const std::vector<std::string>& argv,
                                  const Fd& words) {
  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null) return fail_errno(Reason::Internal, "/dev/null");
  sandbox::ProfileInput profile;
  profile.ids = identities.sandbox;
  profile.user_name = identities.user_name;
  profile.home = identities.home;
  auto child = sandbox::start_sealed({.ids = identities.sandbox,
                                      .become = identities.become_sandbox,
                                      .profile = sandbox::make_profile(profile),
                                      .mounts = {},
                                      .stdio = {null.get(), words.get(), words.get()},
                                      .argv = argv,
                                      .environment = {"PATH=/usr/bin:/bin"}});
  if (!child) return fail(std::move(child));
  auto status = os::wait_child_within(*child, kSealedTrialLimit);
  if (!status) return fail(std::move(status));
  if (*status) return **status;
  static_cast<void>(os::kill_child(*child, SIGKILL));
  static_cast<void>(os::wait_child(*child));
  return fail(Reason::Internal, "it did not end in time");
}

}  // namespace

Diagnosis diagnose_programs() {
  std::string folder;
  for (const char* name :
       {"sallyportd", "sallyport-gate", "sallyport-vault", "sallyport-netns", "sallyport-init"}) {
    const auto path = os::find_own_program(name);
    if (!path) return missing(path.error().detail, "Install Sallyport again, with all of its programs.");
    if (::access(path->c_str(), X_OK) != 0)
      return broken(*path + " cannot be executed", "chmod a+x " + *path);
    folder = path->substr(0, path->rfind('/'));
  }
  return ok("all are in " + folder);
}

Diagnosis diagnose_namespaces(const Identities& identities) {
  auto builder = start_builder(identities);
  if (!builder) return broken(builder.error().detail);
  const auto namespaces = builder->namespaces();
  if (!namespaces) return broken(namespaces.error().detail);
  return ok("a user and a network namespace were made");
}

Diagnosis diagnose_doors(const Identities& identities) {
  auto builder = start_builder(identities);
  if (!builder) return broken(builder.error().detail);
  if (const auto namespaces = builder->namespaces(); !namespaces) return broken(namespaces.error().detail);
  const auto doors = builder->open_doors();
  if (!doors) return broken(doors.error().detail);
  if (doors->mode == os::DoorMode::Redirect) return ok("nftables leads every port to them");
  return missing(fmt::format("nftables cannot be used ({}): only ports 80, 443, 53 and the proxy's have one",
                             doors->fallback_reason),
                 "As root: modprobe -a nf_tables nft_redir nft_chain_nat");
}

Diagnosis diagnose_bubblewrap(const Identities& identities) {
  if (::access(sandbox::kBubblewrap, X_OK) != 0) {
    return missing(std::string(sandbox::kBubblewrap) + " is not there", "Install the package bubblewrap.");
  }
  const Fd words(::memfd_create("words", MFD_CLOEXEC));
  if (!words) return broken(fail_errno(Reason::Internal, "memfd_create").error().detail);
  // proc(5): 2 is a filter. The command that bubblewrap runs is inside of all that it made.
  const auto status =
      run_sealed(identities, {"/usr/bin/grep", "-q", "^Seccomp:.*2$", "/proc/self/status"}, words);
  if (!status) return broken(status.error().detail);
  if (status->ok()) return ok("a command was sealed off, under our filter of system calls");
  static_cast<void>(::lseek(words.get(), 0, SEEK_SET));
  const std::string said = os::read_whole(words.get(), kMaxTrialWordsBytes).value_or("");
  return broken(fmt::format("a sealed command failed with {}: {}", status->text(),
                            said.empty() ? "it is under no filter" : escaped(trimmed(said))));
}

Diagnosis diagnose_file_watches() {
  const Fd watch(::inotify_init1(IN_CLOEXEC));
  const std::string numbers = fmt::format("fs.inotify.max_user_instances {}, max_user_watches {}",
                                          number_of("/proc/sys/fs/inotify/max_user_instances"),
                                          number_of("/proc/sys/fs/inotify/max_user_watches"));
  if (watch && ::inotify_add_watch(watch.get(), "/", IN_ATTRIB) >= 0) return ok(numbers);
  return broken(fmt::format("none can be had ({}): {}", errno_text(errno), numbers),
                "As root: sysctl -w fs.inotify.max_user_instances=1024 fs.inotify.max_user_watches=524288");
}

Diagnosis diagnose_limits() {
  std::string few = too_few(RLIMIT_NPROC, kFewProcesses, "processes");
  if (few.empty()) few = too_few(RLIMIT_NOFILE, kFewFiles, "open files");
  if (!few.empty()) return broken(few + " are allowed", "Raise it in /etc/security/limits.conf.");
  return ok(
      fmt::format("processes {}, open files {}", text_of_limit(RLIMIT_NPROC), text_of_limit(RLIMIT_NOFILE)));
}

Diagnosis diagnose_cgroups() {
  if (os::path_exists("/sys/fs/cgroup/cgroup.controllers")) return ok("version 2");
  if (os::path_exists("/sys/fs/cgroup/pids")) return ok("version 1");
  return missing("none are mounted at /sys/fs/cgroup", "A container engine needs them; `run` does not.");
}

Diagnosis diagnose_authorities() {
  const auto roots = sandbox::read_system_roots();
  if (!roots) return missing(roots.error().detail, "Install the package ca-certificates.");
  return ok("the system's authorities can be read");
}

}  // namespace sallyport::session
