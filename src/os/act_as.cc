#include "os/act_as.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <stdexcept>
#include <system_error>
#include <utility>

// By the kernel's own calls, which concern the calling thread: those of the C library change all threads, one
// after the other.
namespace sallyport::os {
namespace {

using Capabilities = ActAs::Capabilities;

bool set_groups(const std::vector<gid_t>& groups) {
  return ::syscall(SYS_setgroups, groups.size(), groups.data()) == 0;
}

// setfsuid(2) tells no failure, but what there was; -1 is nobody's and changes nothing.
uid_t file_uid_now() {
  return static_cast<uid_t>(::syscall(SYS_setfsuid, -1));
}
gid_t file_gid_now() {
  return static_cast<gid_t>(::syscall(SYS_setfsgid, -1));
}
bool set_file_ids(uid_t uid, gid_t gid) {
  ::syscall(SYS_setfsgid, gid);
  ::syscall(SYS_setfsuid, uid);
  return file_gid_now() == gid && file_uid_now() == uid;
}

using CapabilityData = std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3>;

bool get_capabilities(CapabilityData& data) {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  return ::syscall(SYS_capget, &header, data.data()) == 0;
}

// Those of `wanted` that are permitted.
bool set_effective(const Capabilities& wanted) {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  CapabilityData data{};
  if (!get_capabilities(data)) return false;
  for (std::size_t i = 0; i < data.size(); ++i) data[i].effective = wanted[i] & data[i].permitted;
  return ::syscall(SYS_capset, &header, data.data()) == 0;
}

// setfsuid(2) takes away those over files alone; by CAP_SYS_ADMIN, say, one reaches files of others as well.
// kill(2): without this one a program of the user's that hangs could not be ended.
constexpr Capabilities kEndChildren = {1U << CAP_KILL, 0};
constexpr Capabilities kAll = {~0U, ~0U};

std::vector<gid_t> own_groups() {
  std::vector<gid_t> groups;
  for (;;) {
    const int count = ::getgroups(0, nullptr);
    groups.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
    const int got = ::getgroups(static_cast<int>(groups.size()), groups.data());
    if (got < 0 && errno == EINVAL) continue;
    if (got < 0) throw std::system_error(errno, std::generic_category(), "getgroups");
    groups.resize(static_cast<std::size_t>(got));
    return groups;
  }
}

ActAs::Before present() {
  CapabilityData data{};
  if (!get_capabilities(data)) throw std::system_error(errno, std::generic_category(), "capget");
  return {.ids = {.uid = file_uid_now(), .gid = file_gid_now(), .groups = own_groups()},
          .effective = {data[0].effective, data[1].effective}};
}

// The rights over files come back with the uid, and then the others, by which groups can be set.
void restore(const ActAs::Before& before) {
  if (!set_file_ids(before.ids.uid, before.ids.gid) || !set_effective(before.effective) ||
      !set_groups(before.ids.groups)) {
    std::abort();
  }
}

}  // namespace

ActAs::ActAs(const std::optional<Ids>& user) {
  if (!user) return;
  if (const auto acting = acting_as()) {
    if (acting->uid == user->uid && acting->gid == user->gid) return;
    throw std::logic_error("acts as another user already");
  }
  if (user->uid == 0) throw std::logic_error("root acts as nobody by being root");
  Before before = present();
  if (!set_groups(user->groups)) {
    throw std::system_error(errno, std::generic_category(), "act as another user");
  }
  if (!set_file_ids(user->uid, user->gid) || !set_effective(kEndChildren)) {
    restore(before);
    throw std::system_error(EPERM, std::generic_category(), "act as another user");
  }
  before_ = std::move(before);
}

ActAs::~ActAs() {
  if (before_) restore(*before_);
}

std::optional<Ids> acting_as() {
  const uid_t uid = file_uid_now();
  if (uid == ::geteuid()) return std::nullopt;
  return Ids{.uid = uid, .gid = file_gid_now(), .groups = own_groups()};
}

uid_t file_uid() {
  return file_uid_now();
}

bool take_rights_back() {
  return set_file_ids(::geteuid(), ::getegid()) && set_effective(kAll);
}

}  // namespace sallyport::os
