#include "os/userns.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <map>

#include "base/fd.h"
#include "os/inside_test.h"

namespace sallyport::os {
namespace {

TEST(Userns, NamesTheSwitchThatForbidsThem) {
  const std::string clone = "/proc/sys/kernel/unprivileged_userns_clone";
  const std::string users = "/proc/sys/user/max_user_namespaces";
  const std::string nets = "/proc/sys/user/max_net_namespaces";
  const std::string apparmor = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns";
  const struct {
    const char* name;
    int error;
    std::map<std::string, std::string> files;
    const char* expected;
  } cases[] = {
      {"Debian's switch",
       EPERM,
       {{clone, "0\n"}, {users, "63000\n"}},
       "sysctl -w kernel.unprivileged_userns_clone=1"},
      {"none permitted",
       ENOSPC,
       {{clone, "1\n"}, {users, "0\n"}},
       "sysctl -w user.max_user_namespaces=15000"},
      {"no networks permitted",
       ENOSPC,
       {{users, "63000\n"}, {nets, "0\n"}},
       "sysctl -w user.max_net_namespaces=15000"},
      {"used up", ENOSPC, {{users, "100\n"}, {nets, "100\n"}}, "end some"},
      {"too deep", EUSERS, {{users, "100\n"}}, "nested 32 deep"},
      {"Ubuntu's switch",
       EPERM,
       {{apparmor, "1\n"}, {users, "100\n"}},
       "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"},
      {"Ubuntu's switch, later", EACCES, {{apparmor, "1\n"}}, "give sallyport-netns an AppArmor profile"},
      {"a container",
       EPERM,
       {{clone, "1\n"}, {users, "100\n"}, {apparmor, "0\n"}},
       "a seccomp profile that allows"},
      {"not built in", EINVAL, {}, "CONFIG_USER_NS"},
      {"unknown", ENOMEM, {}, "no switch that is known"},
  };
  for (const auto& test : cases) {
    const std::string text = explain_userns_failure(test.error, [&](const std::string& path) {
      const auto found = test.files.find(path);
      return found == test.files.end() ? std::nullopt : std::optional(found->second);
    });
    EXPECT_NE(text.find(test.expected), std::string::npos) << test.name << ": " << text;
    EXPECT_EQ(text.find("user namespaces cannot be used here ("), 0U) << test.name;
  }
}

TEST(Userns, ExplainsARealLimitOfZero) {
  testing::Forked child([]() -> std::string {
    if (std::string wrong = testing::become_user(testing::kTestIds); !wrong.empty()) return wrong;
    // The limit belongs to the namespace in which it is set.
    if (auto done = enter_new_namespaces(); !done) return done.error().detail;
    {
      const Fd limit(::open("/proc/sys/user/max_user_namespaces", O_WRONLY));
      if (::write(limit.get(), "0", 1) != 1) return "limit: " + errno_text(errno);
    }
    auto nested = enter_new_namespaces();
    return nested ? "made" : nested.error().detail;
  });
  EXPECT_EQ(child.finish(),
            "user namespaces cannot be used here (No space left on device): user.max_user_namespaces is 0; "
            "as root: "
            "sysctl -w user.max_user_namespaces=15000");
}

TEST(Userns, MapsTheOwnIdsAndNoOther) {
  testing::Forked child([]() -> std::string {
    if (std::string wrong = testing::become_user(testing::kTestIds); !wrong.empty()) return wrong;
    const uid_t uid = ::getuid();
    const gid_t gid = ::getgid();
    if (auto done = enter_new_namespaces(); !done) return done.error().detail;
    if (::getuid() != uid || ::getgid() != gid) return "the ids are other ones inside";
    return ::setuid(0) == 0 ? "root inside" : "";
  });
  EXPECT_EQ(child.finish(), "");
}

}  // namespace
}  // namespace sallyport::os
