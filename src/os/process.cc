#include "os/process.h"

#include <grp.h>
#include <limits.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "base/text.h"

namespace sallyport::os {

Result<std::optional<Ids>> parse_ids(int argc, const char* const* argv) {
  if (argc == 1) return std::nullopt;
  if (argc != 5 || std::string_view(argv[1]) != "--uid" || std::string_view(argv[3]) != "--gid") {
    return fail(Reason::Internal, "the arguments are --uid N --gid N, or none");
  }
  const auto uid = parse_decimal(argv[2], std::numeric_limits<uid_t>::max());
  const auto gid = parse_decimal(argv[4], std::numeric_limits<gid_t>::max());
  if (!uid || !gid) return fail(Reason::Internal, "--uid and --gid take numbers");
  return Ids{.uid = static_cast<uid_t>(*uid), .gid = static_cast<gid_t>(*gid)};
}

Status become(const Ids& ids) {
  if (::setgroups(ids.groups.size(), ids.groups.data()) != 0)
    return fail_errno(Reason::Internal, "setgroups");
  if (::setresgid(ids.gid, ids.gid, ids.gid) != 0) return fail_errno(Reason::Internal, "setresgid");
  if (::setresuid(ids.uid, ids.uid, ids.uid) != 0) return fail_errno(Reason::Internal, "setresuid");
  if (ids.uid != 0 && ::setresuid(0, 0, 0) == 0) {
    return fail(Reason::Internal, "setresuid: root could be taken back");
  }
  return {};
}

Status set_parent_death_signal(int signal, pid_t expected_parent) {
  if (::prctl(PR_SET_PDEATHSIG, signal, 0, 0, 0) != 0) {
    return fail_errno(Reason::Internal, "prctl PR_SET_PDEATHSIG");
  }
  // A parent that ended before the call sends nothing any more.
  if (::getppid() != expected_parent) return fail(Reason::SessionEnded, "the parent process is gone");
  return {};
}

Status limit_resource(decltype(RLIMIT_NOFILE) resource, rlim_t most) {
  rlimit values{};
  if (::getrlimit(resource, &values) != 0) return fail_errno(Reason::Internal, "getrlimit");
  const rlimit wanted{most, most};
  if (values.rlim_max < most && ::setrlimit(resource, &wanted) == 0) return {};
  values.rlim_cur = values.rlim_max = std::min(values.rlim_max, most);
  if (::setrlimit(resource, &values) != 0) return fail_errno(Reason::Internal, "setrlimit");
  return {};
}

Result<std::string> own_folder() {
  char path[PATH_MAX];
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof path);
  if (length < 0) return fail_errno(Reason::Internal, "readlink /proc/self/exe");
  const std::string_view whole(path, static_cast<std::size_t>(length));
  const std::size_t slash = whole.rfind('/');
  if (slash == std::string_view::npos) return fail(Reason::Internal, "/proc/self/exe names no path");
  return std::string(whole.substr(0, slash == 0 ? 1 : slash));
}

Result<std::string> find_own_program(std::string_view name) {
  auto folder = own_folder();
  if (!folder) return fail(std::move(folder));
  const std::string beside = *folder + "/" + std::string(name);
  if (::access(beside.c_str(), X_OK) == 0) return beside;
  const std::string libexec = *folder + "/../libexec/sallyport/" + std::string(name);
  if (::access(libexec.c_str(), X_OK) == 0) return libexec;
  return fail(Reason::Internal, std::string(name) + " is neither in " + *folder + " nor in " + *folder +
                                    "/../libexec/sallyport: the installation is incomplete");
}

}  // namespace sallyport::os
