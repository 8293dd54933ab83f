#include "os/userns.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "base/fd.h"
#include "base/text.h"

namespace sallyport::os {

namespace {

Status write_proc(const char* path, std::string_view content) {
  const Fd file(::open(path, O_WRONLY | O_CLOEXEC));
  if (!file) return fail_errno(Reason::Internal, std::string("open ") + path);
  if (::write(file.get(), content.data(), content.size()) != static_cast<ssize_t>(content.size())) {
    return fail_errno(Reason::Internal, std::string("write ") + path);
  }
  return {};
}

Status map_only(uid_t uid, gid_t gid) {
  // user_namespaces(7): an unprivileged process may map its gid only once setgroups() is given up.
  if (auto done = write_proc("/proc/self/setgroups", "deny"); !done) return done;
  const std::string group = std::to_string(gid);
  if (auto done = write_proc("/proc/self/gid_map", group + " " + group + " 1"); !done) return done;
  const std::string user = std::to_string(uid);
  return write_proc("/proc/self/uid_map", user + " " + user + " 1");
}

bool is_value(const std::optional<std::string>& content, std::string_view value) {
  return content && trimmed(content->substr(0, content->find('\n'))) == value;
}

}  // namespace

Status enter_new_namespaces() {
  const uid_t uid = ::geteuid();
  const gid_t gid = ::getegid();
  if (uid == 0) {
    return fail(
        Reason::Internal,
        "a sandbox never gets uid 0: run as an ordinary user, or name one to become when root starts it");
  }
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) {
    return fail(Reason::Internal, explain_userns_failure(errno, read_sysctl));
  }
  Status mapped = map_only(uid, gid);
  if (mapped) return mapped;
  // AppArmor lets an unprivileged namespace be made, and then allows nothing in it.
  return fail(Reason::Internal, mapped.error().detail + "; " + explain_userns_failure(EPERM, read_sysctl));
}

std::optional<std::string> read_sysctl(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return std::nullopt;
  char content[64];  // these files hold one number
  const ssize_t got = ::read(file.get(), content, sizeof content);
  if (got < 0) return std::nullopt;
  return std::string(content, static_cast<std::size_t>(got));
}

std::string explain_userns_failure(int error, const SysctlReader& reader) {
  const std::string failed = "user namespaces cannot be used here (" + errno_text(error) + "): ";
  if (is_value(reader("/proc/sys/kernel/unprivileged_userns_clone"), "0")) {
    return failed +
           "kernel.unprivileged_userns_clone is 0; as root: sysctl -w kernel.unprivileged_userns_clone=1";
  }
  if (is_value(reader("/proc/sys/user/max_user_namespaces"), "0")) {
    return failed + "user.max_user_namespaces is 0; as root: sysctl -w user.max_user_namespaces=15000";
  }
  if (is_value(reader("/proc/sys/user/max_net_namespaces"), "0")) {
    return failed + "user.max_net_namespaces is 0; as root: sysctl -w user.max_net_namespaces=15000";
  }
  if (error == ENOSPC) {
    return failed +
           "as many exist as user.max_user_namespaces or user.max_net_namespaces permit, or they are nested "
           "32 "
           "deep; end some, or as root: sysctl -w user.max_user_namespaces=63000 "
           "user.max_net_namespaces=63000";
  }
  if (error == EUSERS) {
    return failed + "they are nested 32 deep, the kernel's limit; start Sallyport further out";
  }
  if (is_value(reader("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"), "1")) {
    return failed +
           "kernel.apparmor_restrict_unprivileged_userns is 1; give sallyport-netns an AppArmor profile with "
           "\"userns,\", or as root: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0";
  }
  if (error == EPERM || error == EACCES) {
    return failed +
           "a seccomp filter (Docker's default has one) or a chroot forbids them; in a container, start it "
           "with "
           "a seccomp profile that allows unshare, clone, setns and mount";
  }
  if (error == EINVAL || error == ENOSYS) {
    return failed + "the kernel must have CONFIG_USER_NS and CONFIG_NET_NS";
  }
  return failed + "no switch that is known forbids them";
}

}  // namespace sallyport::os
